package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"testing"
	"time"
)

// certificateFiles makes an authority and a certificate of it for a node, as files.
func certificateFiles(t *testing.T) (cert, key, ca string) {
	t.Helper()
	authority := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "nodes"}, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	leaf := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "node"}, NotAfter: time.Now().Add(time.Hour),
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	authorityKey, leafKey := newKey(t), newKey(t)
	keyDER, err := x509.MarshalPKCS8PrivateKey(leafKey)
	if err != nil {
		t.Fatal(err)
	}
	file := func(kind string, der []byte) string {
		return writeFile(t, "pem", string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})))
	}
	return file("CERTIFICATE", sign(t, leaf, authority, leafKey, authorityKey)), file("PRIVATE KEY", keyDER),
		file("CERTIFICATE", sign(t, authority, authority, authorityKey, authorityKey))
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func sign(t *testing.T, c, by *x509.Certificate, key, byKey *ecdsa.PrivateKey) []byte {
	t.Helper()
	der, err := x509.CreateCertificate(rand.Reader, c, by, &key.PublicKey, byKey)
	if err != nil {
		t.Fatal(err)
	}
	return der
}

func TestLinksTakeCertificatesOfTheirOwn(t *testing.T) {
	cert, key, ca := certificateFiles(t)
	runCluster(t, 2, map[string][]string{"cluster-cert": {cert}, "cluster-key": {key}, "cluster-ca": {ca}})
}
