// Package webui serves Temporal's Web UI to look, not to touch: a Terminate from
// there would end an operation without its undo.
//
//	browser ──GET──▶ UI (loopback) ──gRPC (mTLS)──▶ frontend
//	        ──POST/PUT/DELETE──▶ 405, except workflow queries
package webui

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/temporalio/ui-server/v2/server"
	"github.com/temporalio/ui-server/v2/server/config"
	"github.com/temporalio/ui-server/v2/server/server_options"
)

const (
	readinessProbe = 20 * time.Millisecond
	// probeTimeout bounds one readiness question.
	probeTimeout = time.Second
)

// Config says what is shown and where.
type Config struct {
	// Host and Port to listen on. The port must be free: upstream ends the whole
	// process when its listener fails.
	Host string
	Port int
	// TemporalAddress is the frontend's host:port.
	TemporalAddress string
	// Namespace shown first.
	Namespace string
	// TLS towards the frontend; nil means plain text.
	TLS *TLS
}

// TLS names the PEM files shown to, and expected of, the frontend.
type TLS struct {
	CA, Cert, Key, ServerName string
}

// UI is a running Web UI.
type UI struct {
	server *server.Server
	url    string
	ended  chan error
}

// Start serves the UI and returns when it answers.
func Start(ctx context.Context, cfg Config) (*UI, error) {
	settings := &config.Config{
		TemporalGRPCAddress:       cfg.TemporalAddress,
		Host:                      cfg.Host,
		Port:                      cfg.Port,
		EnableUI:                  true,
		DefaultNamespace:          cfg.Namespace,
		CORS:                      config.CORS{CookieInsecure: true},
		Distribution:              "burrow",
		DisableNewsFetch:          true,
		HideLogs:                  true,
		DisableWriteActions:       true,
		WorkflowTerminateDisabled: true,
		WorkflowCancelDisabled:    true,
		WorkflowSignalDisabled:    true,
		WorkflowUpdateDisabled:    true,
		WorkflowResetDisabled:     true,
		WorkflowPauseDisabled:     true,
		BatchActionsDisabled:      true,
		StartWorkflowDisabled:     true,
		ActivityCommandsDisabled:  true,
	}
	if cfg.TLS != nil {
		settings.TLS = config.TLS{
			CaFile: cfg.TLS.CA, CertFile: cfg.TLS.Cert, KeyFile: cfg.TLS.Key,
			ServerName: cfg.TLS.ServerName, EnableHostVerification: true,
		}
	}
	ui := &UI{
		server: server.NewServer(server_options.WithConfigProvider(settings)),
		url:    "http://" + net.JoinHostPort(cfg.Host, fmt.Sprint(cfg.Port)),
		ended:  make(chan error, 1),
	}
	go func() { ui.ended <- ui.server.Start() }()
	if err := ui.awaitServing(ctx); err != nil {
		ui.server.Stop()
		return nil, err
	}
	return ui, nil
}

// awaitServing asks the health route until it answers.
func (u *UI) awaitServing(ctx context.Context) error {
	ticker := time.NewTicker(readinessProbe)
	defer ticker.Stop()
	probe := http.Client{Timeout: probeTimeout}
	for {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, u.url+"/healthz", nil)
		if err != nil {
			return fmt.Errorf("web UI %s: make request: %w", u.url, err)
		}
		answer, err := probe.Do(request)
		if err == nil {
			answer.Body.Close()
			if answer.StatusCode == http.StatusOK {
				return nil
			}
			err = fmt.Errorf("health route answers %s", answer.Status)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("web UI %s: wait until it serves: %w", u.url, errors.Join(context.Cause(ctx), err))
		case ended := <-u.ended:
			return fmt.Errorf("web UI %s: serve: %w", u.url, ended)
		case <-ticker.C:
		}
	}
}

// URL is where people look.
func (u *UI) URL() string { return u.url }

// Stop closes the listener and all connections at once: there is nothing to lose.
func (u *UI) Stop() { u.server.Stop() }
