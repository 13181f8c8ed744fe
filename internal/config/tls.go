package config

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
)

// Client gives the TLS configuration of a client that shows its certificate and trusts
// only CA. A nil TLS gives nil: plain text.
func (t *TLS) Client() (*tls.Config, error) {
	if t == nil {
		return nil, nil
	}
	cfg, err := t.base()
	if err != nil {
		return nil, err
	}
	cfg.RootCAs, cfg.ServerName = cfg.ClientCAs, t.ServerName
	cfg.ClientCAs = nil
	return cfg, nil
}

// Server gives the TLS configuration of a server that asks every client for a
// certificate of CA. A nil TLS gives nil: plain text.
func (t *TLS) Server() (*tls.Config, error) {
	if t == nil {
		return nil, nil
	}
	cfg, err := t.base()
	if err != nil {
		return nil, err
	}
	cfg.ClientAuth = tls.RequireAndVerifyClientCert
	return cfg, nil
}

func (t *TLS) base() (*tls.Config, error) {
	pem, err := os.ReadFile(t.CA)
	if err != nil {
		return nil, fmt.Errorf("certificate authority: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("certificate authority %s: no certificate in it", t.CA)
	}
	cert, err := tls.LoadX509KeyPair(t.Cert, t.Key)
	if err != nil {
		return nil, fmt.Errorf("certificate %s: %w", t.Cert, err)
	}
	return &tls.Config{MinVersion: tls.VersionTLS13, ClientCAs: pool, Certificates: []tls.Certificate{cert}}, nil
}
