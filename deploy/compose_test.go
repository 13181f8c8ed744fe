package deploy_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/stretchr/testify/require"
)

// project is the part of the compose format that is used here; decoding is strict, so
// another key fails.
type project struct {
	Name     string             `yaml:"name"`
	Services map[string]service `yaml:"services"`
	Volumes  map[string]any     `yaml:"volumes"`
}

type service struct {
	Image       string                       `yaml:"image"`
	Restart     string                       `yaml:"restart"`
	DependsOn   map[string]map[string]string `yaml:"depends_on"`
	Environment map[string]string            `yaml:"environment"`
	Volumes     []string                     `yaml:"volumes"`
	Ports       []string                     `yaml:"ports"`
	Command     []string                     `yaml:"command"`
	NetworkMode string                       `yaml:"network_mode"`
	Healthcheck *healthcheck                 `yaml:"healthcheck"`
}

type healthcheck struct {
	Test        []string `yaml:"test"`
	Interval    string   `yaml:"interval"`
	Timeout     string   `yaml:"timeout"`
	Retries     int      `yaml:"retries"`
	StartPeriod string   `yaml:"start_period"`
}

const root = ".."

func decode(t *testing.T, file string) project {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	var loose map[string]any // expands the anchors of the x- parts
	require.NoError(t, yaml.Unmarshal(text, &loose))
	for key := range loose {
		if strings.HasPrefix(key, "x-") {
			delete(loose, key)
		}
	}
	plain, err := yaml.Marshal(loose)
	require.NoError(t, err)
	var p project
	require.NoError(t, yaml.UnmarshalWithOptions(plain, &p, yaml.Strict()), string(plain))
	return p
}

// oneShot services end by themselves.
var oneShot = []string{"temporal-schema", "temporal-namespace"}

func TestComposeServicesArePinnedCheckedAndKeepTheirData(t *testing.T) {
	p := decode(t, filepath.Join(root, "docker-compose.yml"))
	pinned := regexp.MustCompile(`^[a-z0-9./-]+:v?\d+\.\d+(\.\d+)?$`)
	for name, s := range p.Services {
		require.Regexp(t, pinned, s.Image, name)
		require.NotEmpty(t, s.Restart, name)
		if slices.Contains(oneShot, name) {
			require.True(t, strings.HasPrefix(s.Restart, "on-failure"), name)
		} else {
			require.NotNil(t, s.Healthcheck, "%s has a health check", name)
			require.NotEmpty(t, s.Healthcheck.Test, name)
		}
		for on, how := range s.DependsOn {
			require.Contains(t, p.Services, on, name)
			if slices.Contains(oneShot, on) {
				require.Equal(t, "service_completed_successfully", how["condition"], name)
			} else {
				require.Equal(t, "service_healthy", how["condition"], name)
			}
		}
		for _, volume := range s.Volumes {
			source, _, _ := strings.Cut(volume, ":")
			if strings.HasPrefix(source, "./") {
				require.FileExists(t, filepath.Join(root, source), name)
			} else {
				require.Contains(t, p.Volumes, source, name)
			}
		}
		for _, port := range s.Ports {
			require.Regexp(t, `^(127\.0\.0\.1|\$\{BURROW_BIND:-127\.0\.0\.1\}):`, port, "%s is published on loopback unless asked", name)
		}
	}
	for name := range p.Volumes {
		used := slices.ContainsFunc(slices.Collect(mapsValues(p.Services)), func(s service) bool {
			return slices.ContainsFunc(s.Volumes, func(v string) bool { return strings.HasPrefix(v, name+":") })
		})
		require.True(t, used, "volume %s", name)
	}
}

func mapsValues(services map[string]service) func(func(service) bool) {
	return func(yield func(service) bool) {
		for _, s := range services {
			if !yield(s) {
				return
			}
		}
	}
}

func TestComposeEtcdIsOneClusterOfThree(t *testing.T) {
	p := decode(t, filepath.Join(root, "docker-compose.yml"))
	var cluster []string
	for i := 1; i <= 3; i++ {
		name := fmt.Sprintf("etcd%d", i)
		env := p.Services[name].Environment
		require.Equal(t, name, env["ETCD_NAME"])
		require.Equal(t, "http://"+name+":2380", env["ETCD_INITIAL_ADVERTISE_PEER_URLS"])
		require.Equal(t, "http://"+name+":2379", env["ETCD_ADVERTISE_CLIENT_URLS"])
		require.Equal(t, []string{name + ":/var/lib/etcd"}, p.Services[name].Volumes)
		cluster = append(cluster, name+"=http://"+name+":2380")
	}
	for i := 1; i <= 3; i++ {
		require.Equal(t, strings.Join(cluster, ","), p.Services[fmt.Sprintf("etcd%d", i)].Environment["ETCD_INITIAL_CLUSTER"])
	}
}

func TestComposeMemberOnItsOwnMachineIsLikeTheOthersAndAsksForCertificates(t *testing.T) {
	base := decode(t, filepath.Join(root, "docker-compose.yml")).Services["etcd1"]
	tls := decode(t, filepath.Join("compose", "tls.yml")).Services["etcd1"]
	member := decode(t, filepath.Join("compose", "etcd-member.yml")).Services["etcd"]
	require.Equal(t, base.Image, member.Image)
	require.NotNil(t, member.Healthcheck)
	require.Equal(t, "host", member.NetworkMode, "peers see each other's addresses")
	for _, key := range []string{"ETCD_DATA_DIR", "ETCD_INITIAL_CLUSTER_TOKEN", "ETCD_AUTO_COMPACTION_MODE", "ETCD_AUTO_COMPACTION_RETENTION", "ETCD_QUOTA_BACKEND_BYTES"} {
		require.Equal(t, base.Environment[key], member.Environment[key], key)
	}
	for _, key := range []string{"ETCD_CERT_FILE", "ETCD_KEY_FILE", "ETCD_TRUSTED_CA_FILE", "ETCD_CLIENT_CERT_AUTH", "ETCD_CLIENT_CERT_ALLOWED_HOSTNAME"} {
		require.Equal(t, tls.Environment[key], member.Environment[key], key)
	}
	for _, key := range []string{"CERT_FILE", "KEY_FILE", "TRUSTED_CA_FILE", "CLIENT_CERT_AUTH"} {
		require.Equal(t, tls.Environment["ETCD_"+key], member.Environment["ETCD_PEER_"+key], "peers as clients: %s", key)
	}
	require.Equal(t, "burrow-server", member.Environment["ETCD_PEER_CERT_ALLOWED_CN"])
	for key, value := range member.Environment {
		if strings.HasSuffix(key, "_URLS") {
			require.True(t, strings.HasPrefix(value, "https://"), key)
			require.NotContains(t, value, "http://", key)
		}
	}
}

func TestComposeWebUIIsReadOnlyAndTemporalIsTheVersionBuiltIn(t *testing.T) {
	p := decode(t, filepath.Join(root, "docker-compose.yml"))
	require.Equal(t, "true", p.Services["temporal-ui"].Environment["TEMPORAL_DISABLE_WRITE_ACTIONS"])
	modules, err := os.ReadFile(filepath.Join(root, "devstack", "go.mod"))
	require.NoError(t, err)
	for module, image := range map[string]string{
		"go.temporal.io/server":              p.Services["temporal"].Image,
		"github.com/temporalio/ui-server/v2": p.Services["temporal-ui"].Image,
		"go.etcd.io/etcd/server/v3":          p.Services["etcd1"].Image,
	} {
		version := regexp.MustCompile(regexp.QuoteMeta(module) + ` v(\S+)`).FindStringSubmatch(string(modules))
		require.NotNil(t, version, module)
		require.True(t, strings.HasSuffix(image, version[1]), "%s is %s, the devstack has %s", image, module, version[1])
	}
	require.Equal(t, strings.TrimPrefix(p.Services["temporal"].Image, "temporalio/server"), strings.TrimPrefix(p.Services["temporal-schema"].Image, "temporalio/admin-tools"))
}

func TestComposeRegistersTheSearchAttributesThatTheDevstackHas(t *testing.T) {
	script, err := os.ReadFile(filepath.Join("compose", "namespace.sh"))
	require.NoError(t, err)
	source, err := os.ReadFile(filepath.Join(root, "devstack", "internal", "temporalnode", "namespace.go"))
	require.NoError(t, err)
	found := regexp.MustCompile(`"(Burrow\w+)": +enums\.INDEXED_VALUE_TYPE_(\w+)`).FindAllStringSubmatch(string(source), -1)
	require.Len(t, found, 9)
	for _, attribute := range found {
		require.Regexp(t, `(?mi)^attribute `+attribute[1]+` `+attribute[2]+`$`, string(script))
	}
}

func TestComposeTLSCoversEveryListenerAndOnlyKnownServices(t *testing.T) {
	base, tls := decode(t, filepath.Join(root, "docker-compose.yml")), decode(t, filepath.Join("compose", "tls.yml"))
	for name, s := range tls.Services {
		require.Contains(t, base.Services, name)
		require.Len(t, s.Volumes, 1, name)
	}
	for name, s := range base.Services {
		if len(s.Ports) > 0 {
			require.Contains(t, tls.Services, name, "published without TLS")
		}
	}
	require.Equal(t, "burrow-worker", tls.Services["etcd2"].Environment["ETCD_CLIENT_CERT_ALLOWED_HOSTNAME"])
	require.Equal(t, "true", tls.Services["temporal"].Environment["TEMPORAL_TLS_REQUIRE_CLIENT_AUTH"])
}

func TestComposeIsAcceptedByDocker(t *testing.T) {
	docker, err := exec.LookPath("docker")
	if err != nil || exec.Command(docker, "compose", "version").Run() != nil {
		t.Skip("docker compose is not installed here; the structure is checked by the other tests")
	}
	for _, files := range [][]string{{"docker-compose.yml"}, {"docker-compose.yml", "deploy/compose/tls.yml"}, {"deploy/compose/etcd-member.yml"}} {
		args := []string{"compose"}
		for _, file := range files {
			args = append(args, "--file", file)
		}
		check := exec.Command(docker, append(args, "config", "--quiet")...)
		check.Dir = root
		check.Env = append(os.Environ(), "POSTGRES_PASSWORD=x", "CERTIFICATES=/certificates",
			"ETCD_MEMBER=a", "ETCD_HOST=a.example.org", "ETCD_ADDRESS=192.0.2.1", "ETCD_CLUSTER=a=https://a.example.org:2380")
		output, err := check.CombinedOutput()
		require.NoError(t, err, string(output))
	}
}

func TestShellScriptsParse(t *testing.T) {
	for _, script := range []string{"make-certificates.sh", "compose/schema.sh", "compose/namespace.sh"} {
		output, err := exec.Command("/bin/sh", "-n", script).CombinedOutput()
		require.NoError(t, err, string(output))
		info, err := os.Stat(script)
		require.NoError(t, err)
		require.NotZero(t, info.Mode().Perm()&0o100, script)
	}
}

func TestSystemdUnitsAreAccepted(t *testing.T) {
	verify, err := exec.LookPath("systemd-analyze")
	if errors.Is(err, exec.ErrNotFound) {
		t.Skip("systemd is not installed here")
	}
	for _, unit := range []string{"burrow.service", "burrow-worker.service"} {
		output, err := exec.Command(verify, "verify", "--man=no", unit).CombinedOutput()
		text := string(output)
		for _, complaint := range []string{"Unknown", "Failed to parse", "Invalid"} {
			require.NotContains(t, text, complaint, unit)
		}
		if err != nil { // the program is not installed where this runs
			require.Contains(t, text, "/usr/local/bin/burrow", unit)
		}
	}
}
