package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/urfave/cli/v2"

	"kvca/proxy/tenant"
)

// weakKey is from how many characters on a key of letters and digits can't be guessed
// from its hash.
const weakKey = 20

func keyCommand() *cli.Command {
	return &cli.Command{
		Name:  "key",
		Usage: "make a key for a tenant, or hash one",
		Description: "Prints a new key on one line and its entry for the keys file on the next.\n" +
			"The key goes to the tenant and is shown this once; the entry goes below keys: of the tenant in the file.",
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "hash", Usage: "read a key from standard input and print its entry only"},
			&cli.StringFlag{Name: "note", Usage: "`TEXT` that says in the file whose key it is"},
		},
		Action: func(c *cli.Context) error {
			if c.Args().Present() { // which is not shown: it may be a key
				return errors.New("key: unexpected argument: a key comes on standard input, where other users don't see it: kvca key --hash < FILE")
			}
			note, err := noteOf(c.String("note"))
			if err != nil {
				return fmt.Errorf("key: --note: %w", err)
			}
			if c.Bool("hash") {
				err = hashKey(c, note)
			} else {
				plain, hash := tenant.NewKey()
				_, err = fmt.Fprintf(c.App.Writer, "%s\n%s\n", plain, keyEntry(hash, note))
			}
			if err != nil {
				return fmt.Errorf("key: %w", err)
			}
			return nil
		},
	}
}

// hashKey prints the entry of the key on standard input. No error shows the key.
func hashKey(c *cli.Context, note string) error {
	// A byte more than a key's, and the line's end.
	line, err := bufio.NewReader(io.LimitReader(c.App.Reader, tenant.MaxKeyBytes+3)).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("read the key from standard input: %w", err)
	}
	plain := strings.TrimRight(line, "\r\n")
	if err := tenant.CheckKey(plain); err != nil {
		return fmt.Errorf("standard input: %w", err)
	}
	if len(plain) < weakKey {
		fmt.Fprintf(c.App.ErrWriter, "kvca: key: warning: a key of %d characters can be guessed from its hash: want %d or more by chance, as `kvca key` makes them\n", len(plain), weakKey)
	}
	_, err = fmt.Fprintln(c.App.Writer, keyEntry(tenant.Hash(plain), note))
	return err
}

// keyEntry is the list element of the keys file.
func keyEntry(hash, note string) string {
	if note == "" {
		return fmt.Sprintf("- %q", hash)
	}
	return fmt.Sprintf("- {hash: %q, note: %q}", hash, note)
}

// noteOf checks a note, which has to come back from the file as it was.
func noteOf(note string) (string, error) {
	if len(note) > tenant.MaxNoteBytes || strings.IndexFunc(note, func(r rune) bool { return r < ' ' || r == 0x7f || r == '\ufffd' }) >= 0 {
		return "", fmt.Errorf("%.40q can't be used: want one line of at most %d bytes", note, tenant.MaxNoteBytes)
	}
	return note, nil
}
