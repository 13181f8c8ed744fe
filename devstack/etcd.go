package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/url"
	"strconv"
	"strings"

	"burrow.dev/devstack/internal/etcdnode"
)

// parseEtcd reads the flags of a process that is an etcd member and nothing else.
func parseEtcd(args []string, stderr io.Writer) (options, error) {
	o := options{runEtcd: true, etcdFlag: "--listen-client"}
	flags := flag.NewFlagSet("etcd", flag.ContinueOnError)
	flags.SetOutput(stderr)
	o.commonFlags(flags)
	flags.StringVar(&o.dataDir, "data-dir", "", "keep the data in `DIR`; required")
	client := flags.String("listen-client", "http://127.0.0.1:2379", "client `URL`; port 0 takes a free one")
	flags.BoolVar(&o.unsafeNoFsync, "unsafe-no-fsync", false, "lose data on a crash, for speed: tests only")
	flags.StringVar(&o.tlsDir, "tls-dir", "", "as for serve; needs https URLs")
	flags.Int64Var(&o.quotaBytes, "quota-bytes", 0, "largest backend in `BYTES`; 0 is 8 GiB")
	name := flags.String("name", "", "`NAME` of this member in --initial-cluster")
	cluster := flags.String("initial-cluster", "", "be one of several members: `NAME=URL,NAME=URL,…` of all their peer listeners, the same for each; read when the data folder is made")
	peer := flags.String("listen-peer", "", "peer `URL`, an address of this machine; default: this member's in --initial-cluster")
	if err := o.finish(flags, args); err != nil {
		return o, err
	}
	if o.dataDir == "" {
		return o, errors.New("etcd: --data-dir is required")
	}
	if o.quotaBytes < 0 {
		return o, errors.New("etcd: --quota-bytes: want a size in bytes, or 0")
	}
	listen, port, err := o.listenURL("--listen-client", *client)
	if err != nil {
		return o, err
	}
	o.etcdHost, o.etcdPort = listen.Hostname(), port
	if *cluster == "" {
		if *name != "" || *peer != "" {
			return o, errors.New("etcd: --name and --listen-peer are for members of an --initial-cluster")
		}
		return o, nil
	}
	return o, o.parseCluster(*name, *cluster, *peer)
}

// parseCluster fills in which member of which cluster this process is.
func (o *options) parseCluster(name, members, listen string) error {
	c := &etcdnode.Cluster{Name: name, Peers: map[string]url.URL{}}
	for member := range strings.SplitSeq(members, ",") {
		of, address, ok := strings.Cut(member, "=")
		if !ok || of == "" {
			return fmt.Errorf("etcd: --initial-cluster: member %q: want NAME=URL", member)
		}
		parsed, port, err := o.listenURL("--initial-cluster", address)
		if err != nil {
			return err
		}
		if port == 0 {
			return fmt.Errorf("etcd: --initial-cluster %s: the others must know the port, 0 is none", member)
		}
		if _, twice := c.Peers[of]; twice {
			return fmt.Errorf("etcd: --initial-cluster: member %q is named twice", of)
		}
		c.Peers[of] = *parsed
	}
	own, ok := c.Peers[name]
	if !ok {
		return fmt.Errorf("etcd: --name %q: want one of the names in --initial-cluster %s", name, members)
	}
	if listen == "" {
		listen = own.String()
	}
	parsed, port, err := o.listenURL("--listen-peer", listen)
	if err != nil {
		return err
	}
	if port == 0 {
		return fmt.Errorf("etcd: --listen-peer %s: the others must know the port, 0 is none", listen)
	}
	c.Listen, o.peerPort = *parsed, port
	o.etcdCluster = c
	return nil
}

// listenURL reads a URL with a port; https goes together with --tls-dir.
func (o *options) listenURL(flag, text string) (*url.URL, int, error) {
	parsed, err := url.Parse(text)
	if err != nil {
		return nil, 0, fmt.Errorf("etcd: %s: %w", flag, err)
	}
	if (parsed.Scheme == "https") != (o.tlsDir != "") || (parsed.Scheme != "http" && parsed.Scheme != "https") {
		return nil, 0, fmt.Errorf("etcd: %s %s: want http://, or https:// together with --tls-dir", flag, text)
	}
	_, port, err := net.SplitHostPort(parsed.Host)
	if err != nil {
		return nil, 0, fmt.Errorf("etcd: %s %s: %w", flag, text, err)
	}
	number, err := strconv.Atoi(port)
	if err != nil {
		return nil, 0, fmt.Errorf("etcd: %s %s: port: %w", flag, text, err)
	}
	return parsed, number, nil
}
