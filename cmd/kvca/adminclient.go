package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/urfave/cli/v2"
)

// Bounds on one call of the admin API.
const (
	adminTimeout   = 30 * time.Second
	maxAdminAnswer = 64 << 20
)

func adminFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "admin", Value: "http://127.0.0.1:8081", Usage: "`URL` or HOST:PORT of a node's admin API", EnvVars: []string{"KVCA_ADMIN"}},
		&cli.BoolFlag{Name: "json", Usage: "print the answer as it came", DisableDefaultText: true},
	}
}

// callAdmin sends a request to a node's admin API and returns the answer's body.
func callAdmin(ctx context.Context, method, base, path string, body io.Reader) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, adminTimeout)
	defer cancel()
	if !strings.Contains(base, "://") {
		base = "http://" + base
	}
	request, err := http.NewRequestWithContext(ctx, method, strings.TrimRight(base, "/")+path, body)
	if err != nil {
		return nil, fmt.Errorf("--admin: %w", err)
	}
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	answer, err := client.Do(request)
	if err != nil {
		return nil, fmt.Errorf("ask the node: %w", err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(io.LimitReader(answer.Body, maxAdminAnswer))
	if err != nil {
		return nil, fmt.Errorf("read the node's answer: %w", err)
	}
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the node answered %s: %s", answer.Status, messageOf(text))
	}
	return text, nil
}

// messageOf is the message of an error of the gateway, or the text as it came.
func messageOf(text []byte) string {
	var e struct{ Error struct{ Message string } }
	if json.Unmarshal(text, &e) == nil && e.Error.Message != "" {
		return e.Error.Message
	}
	return strings.TrimSpace(string(text[:min(len(text), 500)]))
}
