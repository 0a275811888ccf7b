package zmtp

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

const (
	greetingBytes  = 64
	signatureBytes = 10
	mechanism      = "NULL"
	mechanismBytes = 20
)

// greeting is what both sides send first: signature, version 3.1, mechanism, and
// that we are no server of it.
var greeting = func() (g [greetingBytes]byte) {
	g[0], g[9] = 0xFF, 0x7F
	g[10], g[11] = 3, 1
	copy(g[12:12+mechanismBytes], mechanism)
	return g
}()

// shake exchanges greetings and READY commands.
func (c *Conn) shake() error {
	if err := c.net.SetDeadline(time.Now().Add(handshakeTimeout)); err != nil {
		return err
	}
	if _, err := c.net.Write(greeting[:]); err != nil {
		return fmt.Errorf("send the greeting: %w", err)
	}
	if err := c.readGreeting(); err != nil {
		return err
	}
	if _, err := c.net.Write(appendCommand(nil, "READY", ready(c.socketType))); err != nil {
		return fmt.Errorf("send READY: %w", err)
	}
	if err := c.readReady(); err != nil {
		return err
	}
	if err := c.net.SetDeadline(time.Time{}); err != nil {
		return err
	}
	c.up, c.nextPing = true, time.Now().Add(c.c.Heartbeat)
	return nil
}

// readGreeting judges each part as soon as it is there, since whoever speaks
// another protocol may never send the rest.
func (c *Conn) readGreeting() error {
	var g [greetingBytes]byte
	read := func(part []byte) error {
		_, err := io.ReadFull(c.in.src, part)
		if err != nil {
			return fmt.Errorf("read the greeting: %w", cutOff(err))
		}
		return nil
	}
	if err := read(g[:signatureBytes]); err != nil {
		return err
	}
	if g[0] != 0xFF || g[9] != 0x7F {
		return fmt.Errorf("no ZeroMQ socket: it begins with %q: want the signature ff .. 7f", g[:signatureBytes])
	}
	if err := read(g[signatureBytes : signatureBytes+1]); err != nil {
		return err
	}
	if g[10] < 3 {
		return fmt.Errorf("peer speaks ZMTP %d: want 3.0 or later, which libzmq does since 4.0", g[10])
	}
	if err := read(g[signatureBytes+1:]); err != nil {
		return err
	}
	name, padding, _ := bytes.Cut(g[12:12+mechanismBytes], []byte{0})
	if string(name) != mechanism || bytes.Trim(padding, "\x00") != nil {
		return fmt.Errorf("peer wants the mechanism %q: want NULL, a socket without security", name)
	}
	return nil
}

// readReady takes nothing but READY and ERROR: a peer that isn't known yet can't
// make us hold a message.
func (c *Conn) readReady() error {
	flags, size, err := c.in.header()
	if err != nil {
		return fmt.Errorf("read READY: %w", cutOff(err))
	}
	if flags&flagCommand == 0 {
		return errors.New("peer sent a message before READY: want the handshake first")
	}
	body, err := c.in.readCommand(flags, size)
	if err != nil {
		return fmt.Errorf("read READY: %w", err)
	}
	name, rest, err := splitCommand(body)
	if err != nil {
		return err
	}
	switch name {
	case "READY":
		return c.checkPeer(rest)
	case "ERROR":
		return refusal(rest)
	}
	return fmt.Errorf("peer sent the command %q: want READY", name)
}

func (c *Conn) checkPeer(properties []byte) error {
	theirs, err := peerType(properties)
	if err != nil {
		return err
	}
	if want := peers[c.socketType]; !slices.Contains(want, theirs) {
		return fmt.Errorf("peer is a %.20q socket: want %s for our %s; is this the right port?", theirs, strings.Join(want, " or "), c.socketType)
	}
	return nil
}
