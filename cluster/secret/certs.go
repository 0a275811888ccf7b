package secret

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
)

// Certs are a node's certificate and the authority that its peers' must be of.
// The authority must be the cluster's own: whoever has a certificate of it may
// speak as any node.
type Certs struct {
	watch   *watch
	log     *slog.Logger
	current atomic.Pointer[certConfigs]
}

type certConfigs struct{ server, client *tls.Config }

// Certificates reads PEM files: the node's certificate with its chain, its key,
// and the authority's certificates.
func Certificates(certFile, keyFile, caFile string, log *slog.Logger) (*Certs, error) {
	c := &Certs{watch: newWatch(log, certFile, keyFile, caFile), log: orDiscard(log)}
	contents, err := c.watch.first()
	if err != nil {
		return nil, fmt.Errorf("open certificates: %w", err)
	}
	configs, err := newCertConfigs(contents)
	if err != nil {
		return nil, fmt.Errorf("read certificates %s, %s, %s: %w", certFile, keyFile, caFile, err)
	}
	c.current.Store(configs)
	return c, nil
}

// Run looks at the files every two seconds until ctx ends.
func (c *Certs) Run(ctx context.Context) {
	c.watch.run(ctx, func(contents [][]byte) error {
		configs, err := newCertConfigs(contents)
		if err != nil {
			return err
		}
		c.current.Store(configs)
		c.log.Info("link certificates changed")
		return nil
	})
}

// Server is how to accept a connection now. It must be asked for again for the next one.
func (c *Certs) Server() *tls.Config { return c.current.Load().server }

// Client is how to make a connection now. It must be asked for again for the next one.
func (c *Certs) Client() *tls.Config { return c.current.Load().client }

func newCertConfigs(contents [][]byte) (*certConfigs, error) {
	cert, err := tls.X509KeyPair(contents[0], contents[1])
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(contents[2]) {
		return nil, errors.New("no certificate of an authority in it")
	}
	// A node both dials and accepts: better refused here than by every peer.
	chain, err := parseChain(cert.Certificate)
	if err != nil {
		return nil, err
	}
	for usage, name := range map[x509.ExtKeyUsage]string{x509.ExtKeyUsageServerAuth: "server", x509.ExtKeyUsageClientAuth: "client"} {
		if err := verifyChain(chain, roots, usage); err != nil {
			return nil, fmt.Errorf("peers would refuse the certificate as a %s's: %w", name, err)
		}
	}
	return &certConfigs{
		server: baseConfig(&cert, acceptChains(roots, x509.ExtKeyUsageClientAuth)),
		client: baseConfig(&cert, acceptChains(roots, x509.ExtKeyUsageServerAuth)),
	}, nil
}

func parseChain(ders [][]byte) (chain []*x509.Certificate, err error) {
	for _, der := range ders {
		c, err := x509.ParseCertificate(der)
		if err != nil {
			return nil, err
		}
		chain = append(chain, c)
	}
	return chain, nil
}

// acceptChains verifies that the peer's certificate is of the authority and fit
// for its end. Its names are not looked at: addresses of pods change.
func acceptChains(roots *x509.CertPool, usage x509.ExtKeyUsage) func(tls.ConnectionState) error {
	return func(s tls.ConnectionState) error {
		if len(s.PeerCertificates) == 0 {
			return errNoCertificate
		}
		if err := verifyChain(s.PeerCertificates, roots, usage); err != nil {
			return fmt.Errorf("verify the peer's certificate: %w", err)
		}
		return nil
	}
}

func verifyChain(chain []*x509.Certificate, roots *x509.CertPool, usage x509.ExtKeyUsage) error {
	between := x509.NewCertPool()
	for _, c := range chain[1:] {
		between.AddCert(c)
	}
	_, err := chain[0].Verify(x509.VerifyOptions{Roots: roots, Intermediates: between, KeyUsages: []x509.ExtKeyUsage{usage}})
	return err
}
