package member

import (
	"bytes"
	"errors"
	"slices"

	"github.com/hashicorp/memberlist"
)

// KeySource gives the keys of gossip encryption, of 16, 24 or 32 bytes: the one to
// send with and all that are accepted. It is asked every second; a change rotates
// the keys.
type KeySource interface {
	GossipKeys() (primary []byte, all [][]byte)
}

// keys is the ring that memberlist uses and what is on it.
type keys struct {
	source KeySource
	ring   *memberlist.Keyring
	held   [][]byte // as on the ring: the primary first
}

// newKeys asks for the first keys; a nil source gives a nil keys: no encryption.
func newKeys(source KeySource) (*keys, error) {
	if source == nil {
		return nil, nil
	}
	k := &keys{source: source}
	want := k.ask()
	if want == nil {
		return nil, errors.New("the source of gossip keys has no primary key: gossip would go out in the clear")
	}
	ring, err := memberlist.NewKeyring(want[1:], want[0])
	if err != nil {
		return nil, err
	}
	k.ring, k.held = ring, want
	return k, nil
}

// ask gives the keys the source has now, the primary first; nil if it has none.
func (k *keys) ask() [][]byte {
	primary, all := k.source.GossipKeys()
	if len(primary) == 0 {
		return nil
	}
	want := [][]byte{bytes.Clone(primary)}
	for _, key := range all {
		if !has(want, key) {
			want = append(want, bytes.Clone(key))
		}
	}
	return want
}

// rotate makes the ring hold what the source gives, and tells whether that changed.
// A source that has lost its keys changes nothing: silence is no reason to talk in
// the clear.
func (k *keys) rotate() (changed bool, err error) {
	if k == nil {
		return false, nil
	}
	want := k.ask()
	if want == nil || slices.EqualFunc(want, k.held, bytes.Equal) {
		return false, nil
	}
	for _, key := range want {
		if err := k.ring.AddKey(key); err != nil {
			return false, err
		}
	}
	// Each UseKey puts its key in front, so that in the end the ring is in the
	// order of want and what is to go lies behind it. That matters: RemoveKey of any
	// but the last moves keys in place while packets are opened with them.
	for _, key := range slices.Backward(want) {
		if err := k.ring.UseKey(key); err != nil {
			return false, err
		}
	}
	held := k.ring.GetKeys()
	for _, key := range slices.Backward(held[len(want):]) {
		if err := k.ring.RemoveKey(key); err != nil {
			return false, err
		}
	}
	k.held = want
	return true, nil
}

func has(keys [][]byte, key []byte) bool {
	return slices.ContainsFunc(keys, func(k []byte) bool { return bytes.Equal(k, key) })
}
