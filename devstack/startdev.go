package main

import (
	"flag"
	"fmt"
	"io"
	"strings"
	"time"

	"go.temporal.io/api/enums/v1"

	"burrow.dev/devstack/internal/temporalnode"
)

// startDevRetention is what `temporal server start-dev` gives a namespace.
const startDevRetention = 24 * time.Hour

// parseStartDev reads the flags of `temporal server start-dev` that are supported, so
// that the SDK's test helpers can start this program.
func parseStartDev(args []string, stderr io.Writer) (options, error) {
	o := options{runTemporal: true, temporalFlag: "--port"}
	flags := flag.NewFlagSet("server start-dev", flag.ContinueOnError)
	flags.SetOutput(stderr)
	o.commonFlags(flags)
	var namespaces, attributes, overrides repeated
	headless := flags.Bool("headless", false, "no Web UI")
	flags.StringVar(&o.ip, "ip", "127.0.0.1", "address of the frontend")
	flags.StringVar(&o.uiIP, "ui-ip", "127.0.0.1", "address of the Web UI")
	flags.IntVar(&o.temporalPort, "port", 7233, "port of the frontend; 0 takes a free one")
	flags.IntVar(&o.uiPort, "ui-port", 0, "port of the Web UI; default: the frontend's + 1000")
	flags.StringVar(&o.dbFile, "db-filename", "", "SQLite `FILE`; in memory when empty")
	flags.StringVar(&o.logFormat, "log-format", "json", "json or pretty")
	flags.Var(&namespaces, "namespace", "register `NAME` as well as \"default\"; repeatable")
	flags.Var(&attributes, "search-attribute", "register `NAME=TYPE`; repeatable")
	flags.Var(&overrides, "dynamic-config-value", "`KEY=VALUE`; repeatable")
	if err := o.finish(flags, args); err != nil {
		return o, err
	}
	o.runUI = !*headless
	if o.uiPort == 0 && o.temporalPort != 0 {
		o.uiPort = o.temporalPort + 1000
	}
	if o.ip == "localhost" {
		o.ip = "127.0.0.1"
	}
	if o.logFormat == "pretty" {
		o.logFormat = "console"
	}
	var err error
	if o.overrides, err = temporalnode.ParseOverrides(overrides); err != nil {
		return o, err
	}
	o.namespaces, err = startDevNamespaces(namespaces, attributes)
	return o, err
}

// startDevNamespaces gives each name the same attributes; the first is announced.
func startDevNamespaces(names, attributes []string) ([]temporalnode.Namespace, error) {
	types := map[string]enums.IndexedValueType{}
	for _, attribute := range attributes {
		name, kind, ok := strings.Cut(attribute, "=")
		if !ok {
			return nil, fmt.Errorf("search attribute %q: want NAME=TYPE", attribute)
		}
		parsed, err := attributeType(kind)
		if err != nil {
			return nil, err
		}
		types[name] = parsed
	}
	var namespaces []temporalnode.Namespace
	seen := map[string]bool{}
	for _, name := range append(names, "default") {
		if seen[name] {
			continue
		}
		seen[name] = true
		namespaces = append(namespaces, temporalnode.Namespace{Name: name, Retention: startDevRetention, SearchAttributes: types})
	}
	return namespaces, nil
}

// repeated is a flag that may be given several times.
type repeated []string

// String joins the values, for the flag package.
func (r *repeated) String() string { return strings.Join(*r, ",") }

// Set adds one value.
func (r *repeated) Set(value string) error {
	*r = append(*r, value)
	return nil
}
