package temporalnode

import (
	"crypto/rand"
	"fmt"
	"net"
	"path/filepath"
	"time"

	"go.temporal.io/server/common/cluster"
	"go.temporal.io/server/common/config"
	"go.temporal.io/server/common/membership/static"
	sqliteplugin "go.temporal.io/server/common/persistence/sql/sqlplugin/sqlite"
	"go.temporal.io/server/common/primitives"
)

const (
	// clusterName is stored in the database and must not change.
	clusterName = "active"
	// loopback is where the inner services listen, whatever the frontend's address.
	loopback = "127.0.0.1"
	// certificateRefresh is how soon a renewed certificate is used by new connections.
	certificateRefresh = time.Minute
	// joinLimit bounds the start of each service; with static hosts nothing is joined.
	joinLimit = 10 * time.Second
	// busyTimeoutMillis lets a reader from outside (a backup) hold the file for a moment.
	busyTimeoutMillis = "10000"
)

// Config says where the server keeps its data and where it listens.
type Config struct {
	// Dir is the data folder; made with mode 0700 when absent. "" keeps everything in
	// memory: tests only.
	Dir string
	// File replaces Dir by one database file; used by `server start-dev --db-filename`.
	File string
	// Host and Port of the frontend.
	Host string
	Port int
	// InnerPorts are free loopback ports for history, matching and the system worker.
	InnerPorts [3]int
	// TLS nil means plain text without any authentication: tests only.
	TLS *TLS
	// Namespaces that exist when Start returns.
	Namespaces []Namespace
	// Overrides of the dynamic configuration.
	Overrides Overrides
	// LogLevel is zap's: "warn", "info", …; LogFormat is "json" or "console".
	LogLevel, LogFormat string
}

// TLS names PEM files. Server certificates are shown by every listener; the client
// pair is what this process itself shows to the frontend.
type TLS struct {
	CA, ServerCert, ServerKey, ClientCert, ClientKey string
	// ServerName is in the server certificate.
	ServerName string
}

// Address is the frontend's host:port.
func (c Config) Address() string { return net.JoinHostPort(c.Host, fmt.Sprint(c.Port)) }

// store describes the one SQLite database. More than one connection only floods
// with SQLITE_BUSY; without synchronous=full an acknowledged step could be lost.
func (c Config) store() *config.SQL {
	store := &config.SQL{
		PluginName: sqliteplugin.PluginName,
		MaxConns:   1,
	}
	switch {
	case c.File != "":
		store.DatabaseName = c.File
	case c.Dir != "":
		store.DatabaseName = filepath.Join(c.Dir, "temporal.db")
	default:
		store.DatabaseName = rand.Text()
		store.ConnectAttributes = map[string]string{"mode": "memory", "cache": "shared"}
		return store
	}
	store.ConnectAttributes = map[string]string{
		"mode":         "rwc",
		"journal_mode": "wal",
		"synchronous":  "full",
		"busy_timeout": busyTimeoutMillis,
	}
	return store
}

// inner gives the loopback addresses of the services by name.
func (c Config) ports() map[primitives.ServiceName]int {
	return map[primitives.ServiceName]int{
		primitives.FrontendService: c.Port,
		primitives.HistoryService:  c.InnerPorts[0],
		primitives.MatchingService: c.InnerPorts[1],
		primitives.WorkerService:   c.InnerPorts[2],
	}
}

// hosts replaces the membership ring by a fixed list.
func (c Config) hosts() map[primitives.ServiceName]static.Hosts {
	hosts := map[primitives.ServiceName]static.Hosts{}
	for service, port := range c.ports() {
		host := loopback
		if service == primitives.FrontendService {
			host = c.Host
		}
		hosts[service] = static.SingleLocalHost(net.JoinHostPort(host, fmt.Sprint(port)))
	}
	return hosts
}

// server is the static configuration of all four services.
func (c Config) server(store *config.SQL) *config.Config {
	services := map[string]config.Service{}
	for service, port := range c.ports() {
		rpc := config.RPC{GRPCPort: port, BindOnIP: loopback}
		if service == primitives.FrontendService {
			rpc.BindOnIP = c.Host
		}
		services[string(service)] = config.Service{RPC: rpc}
	}
	return &config.Config{
		Global: config.Global{
			Membership: config.Membership{MaxJoinDuration: joinLimit, BroadcastAddress: loopback},
			TLS:        c.tls(),
		},
		Persistence: config.Persistence{
			DefaultStore:     sqliteplugin.PluginName,
			VisibilityStore:  sqliteplugin.PluginName,
			NumHistoryShards: 1,
			DataStores:       map[string]config.DataStore{sqliteplugin.PluginName: {SQL: store}},
		},
		ClusterMetadata: &cluster.Config{
			FailoverVersionIncrement: 10,
			MasterClusterName:        clusterName,
			CurrentClusterName:       clusterName,
			ClusterInformation: map[string]cluster.ClusterInformation{
				clusterName: {Enabled: true, InitialFailoverVersion: 1, RPCAddress: c.Address()},
			},
		},
		DCRedirectionPolicy: config.DCRedirectionPolicy{Policy: "noop"},
		Services:            services,
		Archival: config.Archival{
			History:    config.HistoryArchival{State: "disabled"},
			Visibility: config.VisibilityArchival{State: "disabled"},
		},
		NamespaceDefaults: config.NamespaceDefaults{Archival: config.ArchivalNamespaceDefaults{
			History:    config.HistoryArchivalNamespaceDefaults{State: "disabled"},
			Visibility: config.VisibilityArchivalNamespaceDefaults{State: "disabled"},
		}},
		PublicClient: config.PublicClient{HostPort: c.Address()},
	}
}

// tls asks every peer for a certificate: the inner services would otherwise be a way
// around the frontend's check.
func (c Config) tls() config.RootTLS {
	if c.TLS == nil {
		return config.RootTLS{}
	}
	listener := config.ServerTLS{
		CertFile: c.TLS.ServerCert, KeyFile: c.TLS.ServerKey,
		ClientCAFiles: []string{c.TLS.CA}, RequireClientAuth: true,
	}
	dialer := config.ClientTLS{ServerName: c.TLS.ServerName, RootCAFiles: []string{c.TLS.CA}}
	return config.RootTLS{
		Internode:       config.GroupTLS{Server: listener, Client: dialer},
		Frontend:        config.GroupTLS{Server: listener, Client: dialer},
		SystemWorker:    config.WorkerTLS{CertFile: c.TLS.ClientCert, KeyFile: c.TLS.ClientKey, Client: dialer},
		RefreshInterval: certificateRefresh,
	}
}
