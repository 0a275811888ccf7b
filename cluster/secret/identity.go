package secret

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"math/big"
	"time"
)

// certificate makes the certificate of a derived identity. It is the same on
// every node, and nothing in it is looked at but its public key.
func certificate(key ed25519.PrivateKey) (tls.Certificate, error) {
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1),
		Subject:      pkix.Name{CommonName: "kvca node"},
		NotBefore:    time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC),
		NotAfter:     time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC), // RFC 5280: never
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("make certificate: %w", err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, nil
}

// baseConfig is common to all configurations. No sessions are resumed: a
// connection is made once in hours, and a resumed one would outlive a rotation. A
// chunk of the link fits one record.
func baseConfig(cert *tls.Certificate, verify func(tls.ConnectionState) error) *tls.Config {
	return &tls.Config{
		MinVersion:                  tls.VersionTLS13,
		Certificates:                []tls.Certificate{*cert},
		SessionTicketsDisabled:      true,
		DynamicRecordSizingDisabled: true,
		VerifyConnection:            verify,
		// Names are not what peers are known by (addresses of pods change), so
		// the library's own check of a server is replaced by verify, which fails
		// closed: without a certificate there is no connection.
		InsecureSkipVerify: true,
		ClientAuth:         tls.RequireAnyClientCert,
	}
}

var (
	errNoCertificate  = errors.New("the peer showed no certificate")
	errAnotherSecret  = errors.New("the peer has another cluster secret")
	errNotDerivedKind = errors.New("the peer's certificate was not made from a cluster secret")
)

// acceptKeys verifies that the peer has one of the keys. TLS itself has verified
// that it holds the private part.
func acceptKeys(keys []ed25519.PublicKey) func(tls.ConnectionState) error {
	return func(s tls.ConnectionState) error {
		if len(s.PeerCertificates) == 0 {
			return errNoCertificate
		}
		shown, ok := s.PeerCertificates[0].PublicKey.(ed25519.PublicKey)
		if !ok {
			return errNotDerivedKind
		}
		for _, k := range keys {
			if k.Equal(shown) {
				return nil
			}
		}
		return fmt.Errorf("%w: its key is %s", errAnotherSecret, keyID(shown))
	}
}
