package member

import (
	"fmt"
)

// reason is why a peer is kept out; a closed set, a metric's label.
type reason string

const (
	otherCluster   reason = "cluster"    // another cluster's name
	otherProtocol  reason = "protocol"   // no version of the link's protocol in common
	otherHashKey   reason = "hash_key"   // another key of the chain
	otherBlockSize reason = "block_size" // another block size, and not both bear that
	otherGossipKey reason = "gossip_key" // packets that no key of ours opens
	noSense        reason = "malformed"  // metadata that can't be read
	noRoom         reason = "full"       // more than maxMembers
)

var reasons = []reason{otherCluster, otherProtocol, otherHashKey, otherBlockSize, otherGossipKey, noSense, noRoom}

const maxName = 128

// refusal is an error that names both values.
type refusal struct {
	peer   string
	reason reason
	text   string
}

func (r *refusal) Error() string {
	return fmt.Sprintf("%s%s: %s", refusedPrefix, r.reason, r.text)
}

// foreignText says that a label is another cluster's.
func foreignText(label, own string) string {
	return fmt.Sprintf("cluster %q is not %q: want the same --cluster-name", label, own)
}

// refusedPrefix begins the text of every refusal, also of those that come from
// another node.
const refusedPrefix = "kvca refused: "

// admit decides whether two nodes may be of one cluster: nil if so. It is symmetric,
// so that no pair is half joined.
func admit(own, peer *Meta, name string) *refusal {
	no := func(why reason, format string, a ...any) *refusal {
		return &refusal{name, why, fmt.Sprintf(format, a...)}
	}
	switch {
	case peer.Cluster != own.Cluster:
		return no(otherCluster, "node %q is of cluster %q, this one of %q: want the same --cluster-name", name, peer.Cluster, own.Cluster)
	case max(peer.MinProtocol, own.MinProtocol) > min(peer.MaxProtocol, own.MaxProtocol):
		return no(otherProtocol, "node %q speaks protocols %d..%d, this one %d..%d",
			name, peer.MinProtocol, peer.MaxProtocol, own.MinProtocol, own.MaxProtocol)
	case peer.KeyCheck != own.KeyCheck:
		return no(otherHashKey, "node %q has a hash key of check %016x, this one of %016x: want the same --hash-key-file", name, peer.KeyCheck, own.KeyCheck)
	case peer.BlockSize != own.BlockSize && !(peer.Mixed && own.Mixed):
		return no(otherBlockSize, "node %q has block size %d, this one %d: want the same --block-size, or --mixed-block-sizes on both (there %t, here %t)",
			name, peer.BlockSize, own.BlockSize, peer.Mixed, own.Mixed)
	}
	return nil
}

// admitRaw is admit for metadata as it came.
func admitRaw(own *Meta, name string, raw []byte) (Meta, *refusal) {
	if name == "" || len(name) > maxName {
		return Meta{}, &refusal{"", noSense, fmt.Sprintf("a node's name has %d bytes, 1 to %d are right", len(name), maxName)}
	}
	peer, err := decodeMeta(raw)
	if err != nil {
		return Meta{}, &refusal{name, noSense, fmt.Sprintf("node %q: %v", name, err)}
	}
	return peer, admit(own, &peer, name)
}
