package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
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
		&cli.StringFlag{Name: "token-file", Usage: "`FILE` with the admin API's token", EnvVars: []string{"KVCA_TOKEN_FILE"}},
		&cli.StringFlag{Name: "ca-file", Usage: "`FILE` with the certificates that the node's must be signed by, in place of the system's", EnvVars: []string{"KVCA_CA_FILE"}},
		&cli.BoolFlag{Name: "json", Usage: "print the answer as it came", DisableDefaultText: true},
	}
}

// adminAPI is a node's admin API, and what it takes to be let in. Files are read for
// each call, since they may change.
type adminAPI struct{ base, tokenFile, caFile string }

// adminOf is the admin API that the flags name.
func adminOf(c *cli.Context) adminAPI {
	return adminAPI{c.String("admin"), c.String("token-file"), c.String("ca-file")}
}

// call sends a request and returns the answer's body.
func (a adminAPI) call(ctx context.Context, method, path string, body io.Reader) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, adminTimeout)
	defer cancel()
	request, err := a.request(ctx, method, path, body)
	if err != nil {
		return nil, err
	}
	transport := &http.Transport{DisableKeepAlives: true}
	if transport.TLSClientConfig, err = a.tls(); err != nil {
		return nil, err
	}
	answer, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		return nil, fmt.Errorf("ask the node: %w", err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(io.LimitReader(answer.Body, maxAdminAnswer))
	if err != nil {
		return nil, fmt.Errorf("read the node's answer: %w", err)
	}
	if answer.StatusCode == http.StatusUnauthorized {
		return nil, fmt.Errorf("the node answered %s: %s Want --token-file FILE, or KVCA_TOKEN_FILE", answer.Status, messageOf(text))
	}
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the node answered %s: %s", answer.Status, messageOf(text))
	}
	return text, nil
}

func (a adminAPI) request(ctx context.Context, method, path string, body io.Reader) (*http.Request, error) {
	base := a.base
	if !strings.Contains(base, "://") {
		scheme := "http://"
		if a.caFile != "" {
			scheme = "https://"
		}
		base = scheme + base
	}
	request, err := http.NewRequestWithContext(ctx, method, strings.TrimRight(base, "/")+path, body)
	if err != nil {
		return nil, fmt.Errorf("--admin: %w", err)
	}
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	if a.tokenFile != "" {
		token, err := readBounded(a.tokenFile, maxKeyBytes)
		if err != nil {
			return nil, fmt.Errorf("--token-file: %s %w", a.tokenFile, err)
		}
		request.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	}
	return request, nil
}

func (a adminAPI) tls() (*tls.Config, error) {
	if a.caFile == "" {
		return nil, nil
	}
	text, err := readBounded(a.caFile, maxKeyBytes)
	if err != nil {
		return nil, fmt.Errorf("--ca-file: %s %w", a.caFile, err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("--ca-file: %s holds no certificate in PEM", a.caFile)
	}
	return &tls.Config{RootCAs: roots}, nil
}

// messageOf is the message of an error of the gateway, or the text as it came.
func messageOf(text []byte) string {
	var e struct{ Error struct{ Message string } }
	if json.Unmarshal(text, &e) == nil && e.Error.Message != "" {
		return e.Error.Message
	}
	return strings.TrimSpace(string(text[:min(len(text), 500)]))
}
