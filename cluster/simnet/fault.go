package simnet

import (
	"syscall"
	"time"
)

// SetPackets sets what happens to packets: the shares that are dropped, doubled and
// overtaken by later ones, and how long all of them take.
func (n *Network) SetPackets(drop, duplicate, reorder float64, wait, jitter time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.packets = packetFaults{drop, duplicate, reorder, delay{wait, jitter}}
}

// SetStreams sets how long bytes of a stream take one way.
func (n *Network) SetStreams(wait, jitter time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.streams = delay{wait, jitter}
}

// Partition lets only hosts of one group reach each other, in place of an earlier
// partition; hosts that no group names are a group of their own.
func (n *Network) Partition(groups ...[]string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.settle()
	n.group = map[string]int{}
	for i, g := range groups {
		for _, name := range g {
			n.group[name] = i + 1
		}
	}
	n.wakeAll()
}

// Heal ends a partition; what streams held goes on.
func (n *Network) Heal() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.group = nil
	n.wakeAll()
}

// CutStreams resets the connections between two hosts; new ones are welcome.
func (n *Network) CutStreams(a, b string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for c := range n.conns {
		if c.host.name == a && c.peer.name == b || c.host.name == b && c.peer.name == a {
			c.reset(syscall.ECONNRESET)
		}
	}
}

// Close kills every host.
func (n *Network) Close() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, h := range n.hosts {
		h.kill()
	}
}

// Pause stops the host's process as SIGSTOP does, as far as the network can show it:
// nothing leaves, nothing is read, its kernel still accepts.
func (h *Host) Pause() {
	h.net.mu.Lock()
	defer h.net.mu.Unlock()
	h.paused = true
	h.net.wakeAll()
}

// Resume undoes Pause; packets that came meanwhile are read, and what the process
// would have sent go out.
func (h *Host) Resume() {
	h.net.mu.Lock()
	defer h.net.mu.Unlock()
	h.paused = false
	for _, p := range h.ports {
		p.flush()
	}
	h.net.wakeAll()
}

// Kill ends the host's process: its connections are reset, its ports closed, and
// nothing of it leaves any more, until Restart.
func (h *Host) Kill() {
	h.net.mu.Lock()
	defer h.net.mu.Unlock()
	h.kill()
}

func (h *Host) kill() {
	h.killed, h.paused = true, false
	for c := range h.net.conns {
		// What the process had closed before, its kernel still delivers.
		if c.host == h || c.peer == h && !c.in.ended {
			c.reset(syscall.ECONNRESET)
		}
	}
	for port, l := range h.listeners {
		l.close()
		delete(h.listeners, port)
	}
	for port, p := range h.ports {
		p.closed = true
		delete(h.ports, port)
	}
	h.net.wakeAll()
}

// Restart lets a new process open ports and dial. The old one's ports stay closed;
// end it before, since its dials can't be told from the new one's.
func (h *Host) Restart() {
	h.net.mu.Lock()
	defer h.net.mu.Unlock()
	h.killed = false
}

// reach tells whether packets go from a to b. Lock held.
func (n *Network) reach(a, b *Host) bool {
	return a == b || n.group == nil || n.group[a.name] == n.group[b.name]
}

// settle gives readers what had arrived before the faults change. Lock held.
func (n *Network) settle() {
	now := time.Now()
	for c := range n.conns {
		c.in.arrive(now)
	}
}

// wakeAll lets everyone who waits look again. Lock held.
func (n *Network) wakeAll() {
	close(n.changed)
	n.changed = make(chan struct{})
	for c := range n.conns {
		c.in.wake()
		c.out.wake()
	}
}
