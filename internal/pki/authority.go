package pki

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"

	"burrow.dev/burrow/internal/errs"
)

const (
	// authorityLife is longer than an installation is expected to live.
	authorityLife = 20 * 365 * 24 * time.Hour
	// leafLife bounds what a copied key is worth.
	leafLife = 2 * 365 * 24 * time.Hour
	// backdate allows for clocks that differ.
	backdate = time.Hour
	// serialBits is what RFC 5280 allows at most, and collides never.
	serialBits = 127
)

// Role is what a leaf certificate may be used for, and the name it bears.
type Role struct {
	// Name is the file name without ".pem".
	Name string
	// CommonName in the certificate.
	CommonName string
	// Hosts are DNS names and addresses of a server; empty for a client.
	Hosts []string
	// KeyMode is the key file's mode.
	KeyMode fs.FileMode
}

// authority is the signing pair.
type authority struct {
	key         *ecdsa.PrivateKey
	certificate *x509.Certificate
}

// ensureAuthority loads the authority of dir or makes it, and renews its certificate,
// with the same key and name, in its last third.
func ensureAuthority(dir string, now time.Time) (*authority, error) {
	keyFile, certFile := filepath.Join(dir, "ca-key.pem"), filepath.Join(dir, "ca.pem")
	key, err := readKey(keyFile)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if _, err := os.Lstat(certFile); err == nil {
			return nil, errs.NewOperator("certificate authority "+dir, "read its key", errs.Reason("ca-key.pem is missing while ca.pem is there"),
				"restore ca-key.pem from a backup, or remove the folder to begin with a new authority (remote workers then need new certificates)")
		}
		if key, err = newKey(keyFile, 0o600); err != nil {
			return nil, err
		}
	case err != nil:
		return nil, errs.NewOperator("certificate authority "+dir, "read its key", err, "restore ca-key.pem from a backup")
	}
	certificate, err := readCertificate(certFile)
	if err == nil && key.PublicKey.Equal(certificate.PublicKey) && !nearEnd(certificate, now) {
		return &authority{key: key, certificate: certificate}, nil
	}
	if err == nil && !key.PublicKey.Equal(certificate.PublicKey) {
		return nil, errs.NewOperator("certificate authority "+dir, "check its certificate", errs.Reason("ca.pem does not belong to ca-key.pem"),
			"restore both from one backup")
	}
	template := &x509.Certificate{
		Subject:               pkix.Name{CommonName: "burrow authority"},
		IsCA:                  true,
		BasicConstraintsValid: true,
		MaxPathLenZero:        true,
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
	}
	self := &authority{key: key, certificate: template}
	if self.certificate, err = self.sign(template, &key.PublicKey, now, authorityLife, certFile); err != nil {
		return nil, err
	}
	return self, nil
}

// ensureLeaf gives role a key and a certificate by this authority; what is there and
// good stays untouched. It tells whether the certificate was written.
func (a *authority) ensureLeaf(dir string, role Role, now time.Time) (bool, error) {
	keyFile, certFile := filepath.Join(dir, role.Name+"-key.pem"), filepath.Join(dir, role.Name+".pem")
	key, err := readKey(keyFile)
	if err != nil { // missing or damaged: a leaf's key is worth nothing without its certificate
		if key, err = newKey(keyFile, role.KeyMode); err != nil {
			return false, err
		}
	}
	if have, err := readCertificate(certFile); err == nil && a.good(have, key, role, now) {
		return false, nil
	}
	template := &x509.Certificate{
		Subject:     pkix.Name{CommonName: role.CommonName},
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	for _, host := range role.Hosts {
		if address := net.ParseIP(host); address != nil {
			template.IPAddresses = append(template.IPAddresses, address)
		} else {
			template.DNSNames = append(template.DNSNames, host)
		}
	}
	if len(role.Hosts) > 0 {
		template.ExtKeyUsage = append(template.ExtKeyUsage, x509.ExtKeyUsageServerAuth)
	}
	_, err = a.sign(template, &key.PublicKey, now, leafLife, certFile)
	return err == nil, err
}

// good says that a certificate is ours, belongs to the key, names all hosts and lasts.
func (a *authority) good(have *x509.Certificate, key *ecdsa.PrivateKey, role Role, now time.Time) bool {
	if nearEnd(have, now) || !key.PublicKey.Equal(have.PublicKey) || have.Subject.CommonName != role.CommonName {
		return false
	}
	if have.CheckSignatureFrom(a.certificate) != nil {
		return false
	}
	for _, host := range role.Hosts {
		if have.VerifyHostname(host) != nil {
			return false
		}
	}
	return true
}

// sign fills in serial and validity, signs and writes the certificate.
func (a *authority) sign(template *x509.Certificate, public *ecdsa.PublicKey, now time.Time, life time.Duration, file string) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), serialBits))
	if err != nil {
		return nil, fmt.Errorf("certificate %s: choose serial: %w", file, err)
	}
	template.SerialNumber = serial
	template.NotBefore = now.Add(-backdate)
	template.NotAfter = now.Add(life)
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, public, a.key)
	if err != nil {
		return nil, fmt.Errorf("certificate %s: sign: %w", file, err)
	}
	if err := writePEM(file, "CERTIFICATE", der, 0o644); err != nil {
		return nil, err
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("certificate %s: read back: %w", file, err)
	}
	return certificate, nil
}

// nearEnd says that a certificate is in the last third of its life, or not yet valid.
func nearEnd(c *x509.Certificate, now time.Time) bool {
	third := c.NotAfter.Sub(c.NotBefore) / 3
	return now.Add(third).After(c.NotAfter) || now.Before(c.NotBefore)
}

// newKey makes and writes a P-256 key.
func newKey(file string, mode fs.FileMode) (*ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("key %s: generate: %w", file, err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("key %s: encode: %w", file, err)
	}
	return key, writePEM(file, "PRIVATE KEY", der, mode)
}
