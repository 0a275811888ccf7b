package feed

import (
	"encoding/binary"
	"fmt"
	"math"
)

// numbered takes a message apart from its end, since what comes before the number
// differs: a topic, or none in replies before vLLM 0.26. The payload is the
// message's own memory.
func numbered(frames [][]byte) (seq uint64, payload []byte, err error) {
	if len(frames) < 2 {
		return 0, nil, fmt.Errorf("a message of %d frames came, expected topic, number and batch", len(frames))
	}
	number, payload := frames[len(frames)-2], frames[len(frames)-1]
	if len(number) != 8 {
		return 0, nil, fmt.Errorf("a message came with a number of %d bytes, expected 8", len(number))
	}
	return binary.BigEndian.Uint64(number), payload, nil
}

// reply reads one message of a replay. Its first frame is the empty delimiter of a
// socket that was asked by request.
func reply(frames [][]byte) (seq uint64, payload []byte, end bool, err error) {
	if len(frames) > 0 && len(frames[0]) == 0 {
		frames = frames[1:]
	}
	seq, payload, err = numbered(frames)
	if err != nil {
		return 0, nil, false, fmt.Errorf("replay: %w", err)
	}
	if seq == math.MaxUint64 {
		if len(payload) > 0 {
			return 0, nil, false, fmt.Errorf("replay: the end marker came with %d bytes, expected none", len(payload))
		}
		return seq, nil, true, nil
	}
	return seq, payload, false, nil
}

// question is what a replay is asked for with. Without the delimiter the engine
// does not answer.
func question(from uint64) [][]byte {
	return [][]byte{{}, binary.BigEndian.AppendUint64(nil, from)}
}
