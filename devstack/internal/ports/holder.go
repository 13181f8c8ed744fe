package ports

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// stateListen is TCP_LISTEN in the "st" column of /proc/net/tcp.
const stateListen = "0A"

// holder describes the processes that listen on a TCP port of this network
// namespace: "etcd (pid 812)". Empty when none can be seen.
func holder(port int) string {
	inodes := listenInodes(port)
	if len(inodes) == 0 {
		return ""
	}
	links, err := filepath.Glob("/proc/[0-9]*/fd/*")
	if err != nil {
		return ""
	}
	var found []string
	seen := map[string]bool{}
	for _, link := range links {
		target, err := os.Readlink(link)
		if err != nil || !inodes[target] {
			continue
		}
		pid := strings.Split(link, "/")[2]
		if seen[pid] {
			continue
		}
		seen[pid] = true
		found = append(found, describe(pid))
	}
	return strings.Join(found, ", ")
}

// listenInodes gives the fd link targets ("socket:[123]") of sockets listening on port.
func listenInodes(port int) map[string]bool {
	inodes := map[string]bool{}
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		file, err := os.Open(table)
		if err != nil {
			continue
		}
		lines := bufio.NewScanner(file)
		for lines.Scan() {
			// sl local_address rem_address st … uid timeout inode
			fields := strings.Fields(lines.Text())
			if len(fields) < 10 || fields[3] != stateListen {
				continue
			}
			_, hexPort, ok := strings.Cut(fields[1], ":")
			if !ok {
				continue
			}
			if got, err := strconv.ParseUint(hexPort, 16, 16); err == nil && int(got) == port {
				inodes["socket:["+fields[9]+"]"] = true
			}
		}
		file.Close()
	}
	return inodes
}

// describe names a process by its command name and id.
func describe(pid string) string {
	name, err := os.ReadFile(filepath.Join("/proc", pid, "comm"))
	if err != nil {
		return "pid " + pid
	}
	return fmt.Sprintf("%s (pid %s)", strings.TrimSpace(string(name)), pid)
}
