// Package zmtp speaks ZMTP 3.1, the wire of ZeroMQ sockets, with the NULL
// mechanism: what engines publish their cache events with, and answer replays.
//
// A SUB socket (Subscribe) connects to one publisher, or binds and lets up to 16
// publishers connect; Dial makes one DEALER connection. Accept and Dial also take
// the server's part (PUB, ROUTER), which simulated engines are made of.
//
// # The wire
//
// Both sides send a greeting of 64 bytes and a READY command with their socket
// type; then frames: flags, length (1 byte, or 8), body. A message is one frame or
// more; a command may stand between any two frames, also within a message. Peers
// of 3.0 and 3.1 are spoken to alike: a subscription is sent as a message (0x01 and
// the topic), which both take; it is received in that form also where the peer
// sent it as 3.1's command. Unknown commands are skipped, an ERROR command ends the
// connection with its reason.
//
// # Who owns what
//
// Subscribe runs on its caller's goroutine: it dials, shakes hands, reads and calls
// the Handler. With Bind it has one goroutine more for each publisher, and waits
// for them. Heartbeats need no goroutine: a read waits no longer than one interval
// and sends the PING that is due. Whatever ends the context closes the socket under
// the read.
//
// A connection that breaks is made anew for ever, after a jittered pause of 50 ms,
// growing to 2 s. What was published meanwhile is lost: who needs it asks for a
// replay when Connected is called.
//
// # Bounds
//
// A frame, a message (Config), 8 parts a message, 64 KiB a command. A length is
// checked before anything is allocated for it, and memory then grows only as bytes
// arrive. Between messages a connection keeps at most 1 MiB, and 32 KiB of read
// buffer. A connect, a handshake and a write take no longer than 5 s each; a peer
// that falls silent within a message, or that has answered PINGs before, is dropped
// after three intervals; one that never answers them is left to TCP keep-alive
// (25 s).
package zmtp
