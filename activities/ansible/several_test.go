package ansible

import (
	"context"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"burrow.dev/burrow/activities"
)

func TestOneRunReachesSeveralServersAndTheUsersOwnHosts(t *testing.T) {
	s := newSite(t)
	web := startGuest(t)
	s.nets["web-net"], s.keys["uid-web-0001"] = web, web.management
	s.before = goleak.IgnoreCurrent()
	in := s.in(map[string]string{
		"hosts.yaml": "all: {hosts: {here: {ansible_connection: local}}}\n",
		"site.yaml": `- hosts: label_role_db:label_role_web
  gather_facts: false
  tasks: [{ansible.builtin.command: echo server}]
- hosts: here
  gather_facts: false
  tasks: [{ansible.builtin.debug: {msg: "{{ groups['burrow'] | sort | join(' and ') }} are there"}}]
`,
	})
	in.Owner, in.Whole = "playbook/cluster", true
	in.Hosts = append(in.Hosts, Host{
		// The same address as the other's, on a network of its own.
		Server: activities.Server{Name: "web", UID: "uid-web-0001"}, Network: "web-net", Address: "172.16.90.2", Login: "root",
		HostKeys: []string{line(web.hostKey)}, Labels: map[string]string{"role": "web"}, Networks: []string{"web-net"}, Image: "debian12",
	})
	out, err := s.a.Run(t.Context(), in)
	require.NoError(t, err)
	require.Equal(t, 1, out.Recap["db"].Changed)
	require.Equal(t, 1, out.Recap["web"].Changed)
	require.Equal(t, 1, out.Recap["here"].OK)
	require.Contains(t, s.log(), "db and web are there")
	s.nothingLeft()
}

func TestRunsOfDifferentOwnersOnOneServerGoSideBySide(t *testing.T) {
	s := newSite(t)
	started, over := make(chan struct{}), make(chan error, 1)
	var once sync.Once
	s.a.beat = func(context.Context, Progress) {
		if len(sleepers(t, "981")) > 0 {
			once.Do(func() { close(started) })
		}
	}
	go func() {
		in := s.in(play("    - {ansible.builtin.shell: 'sleep 981 || true', delegate_to: localhost}\n"))
		in.Owner = "playbook/cluster"
		_, err := s.a.Run(t.Context(), in)
		over <- err
	}()
	<-started
	_, err := s.a.Run(t.Context(), s.in(play("    - ansible.builtin.ping:\n")))
	require.NoError(t, err)
	require.Len(t, sleepers(t, "981"), 1, "the other owner's run goes on")
	_, err = s.a.Reap(t.Context(), ReapIn{Owner: "playbook/cluster"})
	require.NoError(t, err)
	require.Error(t, <-over)
	require.Empty(t, sleepers(t, "981"))
	s.nothingLeft()
}
