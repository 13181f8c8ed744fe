package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"go.temporal.io/api/enums/v1"

	"burrow.dev/devstack/internal/etcdnode"
	"burrow.dev/devstack/internal/readiness"
	"burrow.dev/devstack/internal/temporalnode"
	"burrow.dev/devstack/internal/webui"
)

const usage = `burrow-devstack runs Temporal, its Web UI and etcd for Burrow on one machine.

  burrow-devstack serve --data-dir DIR [flags]       all three, durable
  burrow-devstack serve --test [flags]               all three, Temporal in memory, free ports, no TLS
  burrow-devstack etcd --data-dir DIR [flags]        etcd only, alone or as one of several members
  burrow-devstack server start-dev [flags]           Temporal (and Web UI), as "temporal server start-dev"
  burrow-devstack database snapshot --data-dir DIR --file FILE    copy Temporal's database while it runs
  burrow-devstack database check --file FILE                      read such a copy, and say whether it is good

Exit codes: 0 stopped, 1 failed, 2 wrong usage, 3 a port is taken.
Flags of a command: burrow-devstack COMMAND -h
`

// options is one command line, with every port filled in once claimed.
type options struct {
	runEtcd, runTemporal, runUI bool

	dataDir, dbFile, tlsDir string
	test                    bool
	ip, uiIP, etcdHost      string
	etcdPort                int
	etcdFlag                string
	temporalPort            int
	temporalFlag            string
	uiPort                  int
	innerPorts              [3]int
	unsafeNoFsync           bool
	quotaBytes              int64
	etcdCluster             *etcdnode.Cluster
	peerPort                int

	namespaces          []temporalnode.Namespace
	overrides           temporalnode.Overrides
	logLevel, logFormat string
	readyFile           string
	untilStdinCloses    bool
}

// parse reads a command line.
func parse(args []string, stderr io.Writer) (options, error) {
	command := strings.Join(args[:min(len(args), 1)], "")
	switch {
	case command == "serve":
		return parseServe(args[1:], stderr)
	case command == "etcd":
		return parseEtcd(args[1:], stderr)
	case command == "server" && len(args) > 1 && args[1] == "start-dev":
		return parseStartDev(args[2:], stderr)
	case command == "help", command == "-h", command == "--help":
		fmt.Fprint(stderr, usage)
		return options{}, flag.ErrHelp
	}
	return options{}, fmt.Errorf("unknown command %q; known: serve, etcd, server start-dev, database snapshot, database check", strings.Join(args, " "))
}

// commonFlags are those of every command.
func (o *options) commonFlags(flags *flag.FlagSet) {
	flags.StringVar(&o.logLevel, "log-level", "warn", "log `level`: debug, info, warn, error")
	flags.StringVar(&o.readyFile, "ready-file", "", "write a JSON report to `FILE` when everything serves")
	flags.BoolVar(&o.untilStdinCloses, "until-stdin-closes", false, "stop when standard input ends, as well as on SIGTERM")
}

// finish parses and makes paths absolute: starting etcd changes the working folder.
func (o *options) finish(flags *flag.FlagSet, args []string) error {
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	for _, path := range []*string{&o.dataDir, &o.dbFile, &o.tlsDir, &o.readyFile} {
		if *path == "" {
			continue
		}
		absolute, err := filepath.Abs(*path)
		if err != nil {
			return fmt.Errorf("path %s: %w", *path, err)
		}
		*path = absolute
	}
	return nil
}

func parseServe(args []string, stderr io.Writer) (options, error) {
	o := options{
		runEtcd: true, runTemporal: true, runUI: true, etcdFlag: "--etcd-port", temporalFlag: "--temporal-port",
		uiIP: "127.0.0.1", etcdHost: "127.0.0.1", logFormat: "json",
		namespaces: []temporalnode.Namespace{temporalnode.BurrowNamespace()},
	}
	flags := flag.NewFlagSet("serve", flag.ContinueOnError)
	flags.SetOutput(stderr)
	o.commonFlags(flags)
	flags.StringVar(&o.dataDir, "data-dir", "", "keep everything in `DIR`; required")
	flags.StringVar(&o.tlsDir, "tls-dir", "", "ask clients for certificates; `DIR` holds ca.pem, server.pem, server-key.pem, worker.pem, worker-key.pem")
	flags.IntVar(&o.temporalPort, "temporal-port", 7233, "port of the Temporal frontend on loopback; 0 takes a free one")
	flags.IntVar(&o.uiPort, "ui-port", 8233, "port of the Web UI on loopback; 0 takes a free one")
	flags.IntVar(&o.etcdPort, "etcd-port", 2379, "client port of etcd on loopback; 0 takes a free one")
	flags.BoolVar(&o.test, "test", false, "for tests: Temporal in memory, etcd without fsync, free ports, no Web UI unless --ui-port is given")
	if err := o.finish(flags, args); err != nil {
		return o, err
	}
	o.ip = "127.0.0.1"
	if o.test {
		o.applyTest(flags)
	}
	if o.dataDir == "" {
		return o, errors.New("serve: --data-dir is required")
	}
	return o, nil
}

// applyTest makes what was not asked for fast and harmless.
func (o *options) applyTest(flags *flag.FlagSet) {
	given := map[string]bool{}
	flags.Visit(func(f *flag.Flag) { given[f.Name] = true })
	for name, port := range map[string]*int{"temporal-port": &o.temporalPort, "ui-port": &o.uiPort, "etcd-port": &o.etcdPort} {
		if !given[name] {
			*port = 0
		}
	}
	o.runUI = given["ui-port"]
	o.unsafeNoFsync = true
}

func (o options) etcdConfig() etcdnode.Config {
	cfg := etcdnode.Config{
		Dir: o.dataDir, Host: o.etcdHost, Port: o.etcdPort, Cluster: o.etcdCluster,
		QuotaBytes: o.quotaBytes, UnsafeNoFsync: o.unsafeNoFsync, LogLevel: o.logLevel,
	}
	if o.runTemporal {
		cfg.Dir = filepath.Join(o.dataDir, "etcd")
	}
	if o.tlsDir != "" {
		cfg.TLS = &etcdnode.TLS{CA: o.file("ca.pem"), Cert: o.file("server.pem"), Key: o.file("server-key.pem")}
	}
	return cfg
}

func (o options) temporalConfig() temporalnode.Config {
	cfg := temporalnode.Config{
		File: o.dbFile, Host: o.ip, Port: o.temporalPort, InnerPorts: o.innerPorts,
		Namespaces: o.namespaces, Overrides: o.overrides, LogLevel: o.logLevel, LogFormat: o.logFormat,
	}
	if o.dataDir != "" && !o.test {
		cfg.Dir = filepath.Join(o.dataDir, "temporal")
	}
	if o.tlsDir != "" {
		cfg.TLS = &temporalnode.TLS{
			CA: o.file("ca.pem"), ServerCert: o.file("server.pem"), ServerKey: o.file("server-key.pem"),
			ClientCert: o.file("worker.pem"), ClientKey: o.file("worker-key.pem"), ServerName: serverName,
		}
	}
	return cfg
}

func (o options) uiConfig(report readiness.Report) webui.Config {
	cfg := webui.Config{Host: o.uiIP, Port: o.uiPort, TemporalAddress: report.TemporalAddress, Namespace: report.Namespace}
	if o.tlsDir != "" {
		cfg.TLS = &webui.TLS{CA: o.file("ca.pem"), Cert: o.file("worker.pem"), Key: o.file("worker-key.pem"), ServerName: serverName}
	}
	return cfg
}

// attributeType reads "Keyword", "Int", … as the Temporal CLI writes them.
func attributeType(name string) (enums.IndexedValueType, error) {
	kind, err := enums.IndexedValueTypeFromString(name)
	if err != nil {
		return 0, fmt.Errorf("search attribute type %q: %w", name, err)
	}
	return kind, nil
}
