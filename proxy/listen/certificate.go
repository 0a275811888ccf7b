package listen

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"time"
)

// snapshot is what follows from one content of the files. It does not change.
type snapshot struct {
	config      *tls.Config
	fingerprint string    // SHA-256 of the certificate, in hex
	expires     time.Time // of the certificate or, if earlier, one of its chain
	begins      time.Time
	names       []string
}

// newSnapshot makes a configuration of the certificate with its chain, the key,
// and, if there are three contents, the authorities of clients.
func newSnapshot(minVersion uint16, contents [][]byte) (*snapshot, error) {
	pair, err := tls.X509KeyPair(contents[0], contents[1])
	if err != nil {
		return nil, err
	}
	config := &tls.Config{
		Certificates: []tls.Certificate{pair},
		MinVersion:   minVersion,
		NextProtos:   []string{"h2", "http/1.1"},
	}
	if len(contents) > 2 {
		config.ClientCAs = x509.NewCertPool()
		if !config.ClientCAs.AppendCertsFromPEM(contents[2]) {
			return nil, errors.New("no certificate of an authority in the file for those of clients")
		}
		config.ClientAuth = tls.RequireAndVerifyClientCert
		// A resumed session would outlive a change of the authorities.
		config.SessionTicketsDisabled = true
	}
	s := &snapshot{config: config}
	return s, s.describe(pair.Certificate)
}

func (s *snapshot) describe(chain [][]byte) error {
	for i, der := range chain {
		c, err := x509.ParseCertificate(der)
		if err != nil {
			return fmt.Errorf("certificate %d of the chain: %w", i+1, err)
		}
		if i == 0 {
			sum := sha256.Sum256(der)
			s.fingerprint = hex.EncodeToString(sum[:])
			s.expires, s.begins, s.names = c.NotAfter, c.NotBefore, c.DNSNames
			for _, ip := range c.IPAddresses {
				s.names = append(s.names, ip.String())
			}
		} else if c.NotAfter.Before(s.expires) {
			s.expires = c.NotAfter
		}
	}
	return nil
}

// valid says what is wrong with the certificate's time.
func (s *snapshot) valid(now time.Time) error {
	switch {
	case now.After(s.expires):
		return fmt.Errorf("the certificate or one of its chain expired at %s", s.expires.UTC().Format(time.RFC3339))
	case now.Before(s.begins):
		return fmt.Errorf("the certificate is valid from %s only", s.begins.UTC().Format(time.RFC3339))
	}
	return nil
}
