package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"burrow.dev/devstack/internal/etcdnode"
	"burrow.dev/devstack/internal/ports"
	"burrow.dev/devstack/internal/readiness"
	"burrow.dev/devstack/internal/temporalnode"
	"burrow.dev/devstack/internal/webui"
)

// startLimit bounds the whole start: a large database or a slow disk is minutes away from it.
const startLimit = 2 * time.Minute

// serverName is in the server certificate of the TLS folder.
const serverName = "localhost"

// stack is the parts that run, in the order of their start.
type stack struct {
	etcd     *etcdnode.Node
	temporal *temporalnode.Node
	ui       *webui.UI
	report   readiness.Report
}

// serve runs what the options ask for until ctx ends, then stops it in order.
func serve(ctx context.Context, o options, stdout io.Writer) error {
	started := time.Now()
	if err := readiness.Remove(o.readyFile); err != nil {
		return err
	}
	if err := o.claimPorts(); err != nil {
		return err
	}
	running, err := start(ctx, o)
	if err != nil {
		return errors.Join(err, running.stop())
	}
	running.report.PID = os.Getpid()
	running.report.TLS = o.tlsDir != ""
	running.report.StartupMillis = time.Since(started).Milliseconds()
	running.announce(stdout)
	if err := running.report.Write(o.readyFile); err != nil {
		return errors.Join(err, running.stop())
	}
	err = running.wait(ctx)
	return errors.Join(err, running.stop(), readiness.Remove(o.readyFile))
}

// start starts the parts; what it gives must be stopped also when it fails.
func start(ctx context.Context, o options) (*stack, error) {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	s := &stack{}
	var err error
	if o.runEtcd {
		if s.etcd, err = etcdnode.Start(ctx, o.etcdConfig()); err != nil {
			return s, err
		}
		s.report.EtcdEndpoint = s.etcd.Endpoint()
	}
	if o.runTemporal {
		cfg := o.temporalConfig()
		if s.temporal, err = temporalnode.Start(ctx, cfg); err != nil {
			return s, err
		}
		s.report.TemporalAddress = cfg.Address()
		s.report.Namespace = cfg.Namespaces[0].Name
	}
	if o.runUI {
		if s.ui, err = webui.Start(ctx, o.uiConfig(s.report)); err != nil {
			return s, err
		}
		s.report.WebUI = s.ui.URL()
	}
	return s, nil
}

// announce prints one line for each part.
func (s *stack) announce(w io.Writer) {
	if s.etcd != nil {
		fmt.Fprintf(w, "etcd ready %s\n", s.report.EtcdEndpoint)
	}
	if s.temporal != nil {
		fmt.Fprintf(w, "temporal ready %s namespace %s\n", s.report.TemporalAddress, s.report.Namespace)
	}
	if s.ui != nil {
		fmt.Fprintf(w, "web UI ready %s\n", s.report.WebUI)
	}
}

// wait blocks until ctx ends (success) or a part fails.
func (s *stack) wait(ctx context.Context) error {
	var etcdFailed <-chan error
	if s.etcd != nil {
		etcdFailed = s.etcd.Err()
	}
	select {
	case <-ctx.Done():
		return nil
	case err := <-etcdFailed:
		return fmt.Errorf("etcd: serve: %w", err)
	}
}

// stop ends the parts, last started first: what depends goes before what it depends on.
func (s *stack) stop() error {
	var failures []error
	if s.ui != nil {
		s.ui.Stop()
	}
	if s.temporal != nil {
		ctx, cancel := context.WithTimeout(context.Background(), temporalnode.StopGrace)
		failures = append(failures, s.temporal.Stop(ctx))
		cancel()
	}
	if s.etcd != nil {
		ctx, cancel := context.WithTimeout(context.Background(), etcdnode.StopGrace)
		failures = append(failures, s.etcd.Stop(ctx))
		cancel()
	}
	return errors.Join(failures...)
}

// claimPorts checks every port before anything starts and fills in the free ones.
func (o *options) claimPorts() error {
	wants := []ports.Want{}
	targets := []*int{}
	want := func(purpose, flag, host string, port *int) {
		wants = append(wants, ports.Want{Purpose: purpose, Flag: flag, Host: host, Port: *port})
		targets = append(targets, port)
	}
	if o.runEtcd {
		want("etcd", o.etcdFlag, o.etcdHost, &o.etcdPort)
	}
	if o.etcdCluster != nil {
		want("etcd's peers", "--listen-peer", o.etcdCluster.Listen.Hostname(), &o.peerPort)
	}
	if o.runTemporal {
		want("Temporal frontend", o.temporalFlag, o.ip, &o.temporalPort)
		for i := range o.innerPorts {
			want("Temporal inner service", "nothing (any free port)", "127.0.0.1", &o.innerPorts[i])
		}
	}
	if o.runUI {
		want("Temporal Web UI", "--ui-port", o.uiIP, &o.uiPort)
	}
	chosen, err := ports.Claim(wants...)
	if err != nil {
		return err
	}
	for i, target := range targets {
		*target = chosen[i]
	}
	return nil
}

// file names a PEM file of the TLS folder.
func (o options) file(name string) string { return filepath.Join(o.tlsDir, name) }
