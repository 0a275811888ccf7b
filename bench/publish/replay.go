package publish

import (
	"bytes"
	"context"
	"encoding/binary"

	"kvca/proxy/engine/zmtp"
)

// endOfReplay stands in a replay's end where other replies have their number.
var endOfReplay = bytes.Repeat([]byte{0xff}, 8)

// serveReplays answers one client's requests until the connection or life ends.
func (p *Publisher) serveReplays(life context.Context, conn *zmtp.Conn) {
	for {
		request, err := conn.Receive()
		if err != nil {
			return
		}
		// What a ROUTER's user sees is the client's name and these two frames.
		if len(request) != 2 || len(request[0]) != 0 || len(request[1]) != 8 {
			continue
		}
		start := binary.BigEndian.Uint64(request[1])
		select {
		case p.replaying <- struct{}{}:
		case <-life.Done():
			return
		}
		err = p.replay(life, conn, start)
		<-p.replaying
		if err != nil {
			return
		}
	}
}

// replay sends what is kept from start on.
func (p *Publisher) replay(life context.Context, conn *zmtp.Conn, start uint64) error {
	p.mu.Lock()
	if life.Err() != nil { // the ring is another engine's
		p.mu.Unlock()
		return life.Err()
	}
	batches := p.ring.from(start)
	short := p.faults.take(ShortReplay) != ""
	p.mu.Unlock()
	if short {
		batches = batches[:len(batches)/2]
	}
	for _, b := range batches {
		if err := p.reply(conn, []byte(p.c.Topic), binary.BigEndian.AppendUint64(nil, b.seq), b.payload); err != nil {
			return err
		}
	}
	if short {
		return nil
	}
	return p.reply(conn, nil, endOfReplay, nil)
}

func (p *Publisher) reply(conn *zmtp.Conn, topic, number, payload []byte) error {
	if p.c.OldReplay {
		return conn.Send(nil, number, payload)
	}
	return conn.Send(nil, topic, number, payload)
}
