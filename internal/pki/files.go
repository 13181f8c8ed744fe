package pki

import (
	"crypto/ecdsa"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// readKey reads a PKCS#8 P-256 key. A missing file is fs.ErrNotExist.
func readKey(file string) (*ecdsa.PrivateKey, error) {
	der, err := readPEM(file, "PRIVATE KEY")
	if err != nil {
		return nil, err
	}
	parsed, err := x509.ParsePKCS8PrivateKey(der)
	if err != nil {
		return nil, fmt.Errorf("key %s: parse: %w", file, err)
	}
	key, ok := parsed.(*ecdsa.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("key %s: is a %T, want ECDSA", file, parsed)
	}
	return key, nil
}

// readCertificate reads the first certificate of a file.
func readCertificate(file string) (*x509.Certificate, error) {
	der, err := readPEM(file, "CERTIFICATE")
	if err != nil {
		return nil, err
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("certificate %s: parse: %w", file, err)
	}
	return certificate, nil
}

func readPEM(file, kind string) ([]byte, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(text)
	if block == nil || block.Type != kind {
		return nil, fmt.Errorf("%s: no %s in it", file, kind)
	}
	return block.Bytes, nil
}

// writePEM puts a file in place at once and on disk: a reader sees the old or the new one.
func writePEM(file, kind string, der []byte, mode fs.FileMode) error {
	return writeFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), mode)
}

// writeFile writes aside, syncs and renames.
func writeFile(file string, content []byte, mode fs.FileMode) error {
	aside, err := os.CreateTemp(filepath.Dir(file), ".new-*") // mode 0600
	if err != nil {
		return fmt.Errorf("%s: create: %w", file, err)
	}
	defer os.Remove(aside.Name())
	defer aside.Close()
	if _, err := aside.Write(content); err != nil {
		return fmt.Errorf("%s: write: %w", file, err)
	}
	if err := aside.Chmod(mode); err != nil {
		return fmt.Errorf("%s: set mode: %w", file, err)
	}
	if err := aside.Sync(); err != nil {
		return fmt.Errorf("%s: sync: %w", file, err)
	}
	if err := os.Rename(aside.Name(), file); err != nil {
		return fmt.Errorf("%s: put in place: %w", file, err)
	}
	return nil
}
