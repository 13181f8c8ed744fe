package supervise_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"burrow.dev/burrow/internal/supervise"
)

// childEnv makes the test binary play a part, or a supervisor, instead of testing.
const childEnv = "SUPERVISE_TEST_CHILD"

func TestMain(m *testing.M) {
	if role := os.Getenv(childEnv); role != "" {
		os.Exit(play(role, os.Args[1:]))
	}
	os.Exit(m.Run())
}

// play is the program of a part: it writes its pid into a file when it serves.
func play(role string, args []string) int {
	switch role {
	case "serve", "stubborn":
		ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
		defer stop()
		if err := os.WriteFile(args[0], fmt.Appendf(nil, "%d", os.Getpid()), 0o644); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		<-ctx.Done()
		if role == "stubborn" {
			select {}
		}
		fmt.Fprintf(os.Stderr, "%s stopped in order\n", filepath.Base(args[0]))
		return 0
	case "fail":
		fmt.Fprintln(os.Stderr, "listen on 127.0.0.1:7233: the port is held by mysqld (pid 812)")
		return 3
	case "supervisor":
		return playSupervisor(args[0], args[1:])
	}
	return 9
}

// playSupervisor is what `burrow up` does, with parts by "name=role".
func playSupervisor(dir string, parts []string) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	s := &supervise.Supervisor{Dir: dir, Log: slog.New(slog.NewTextHandler(os.Stderr, nil))}
	for _, part := range parts {
		name, role, _ := strings.Cut(part, "=")
		s.Parts = append(s.Parts, partOf(dir, name, role))
	}
	err := s.Acquire()
	if err == nil {
		err = s.Run(ctx, func() { fmt.Println("READY") })
	}
	if err = errors.Join(err, s.Close()); err != nil {
		fmt.Println("ERROR", err)
		return 1
	}
	return 0
}

// partOf makes a part whose program is this test binary.
func partOf(dir, name, role string) supervise.Part {
	self, err := os.Executable()
	if err != nil {
		panic(err)
	}
	pidFile := filepath.Join(dir, name+".pid")
	grace := patience
	if role == "stubborn" {
		grace = 500 * time.Millisecond
	}
	return supervise.Part{
		Name:      name,
		Command:   supervise.Command{Path: self, Args: []string{pidFile}, Env: []string{childEnv + "=" + role}},
		Version:   os.Getenv("PART_VERSION"),
		StopGrace: grace,
		Ready: func(_ context.Context, pid int) error {
			text, err := os.ReadFile(pidFile)
			if err != nil {
				return err
			}
			if string(text) != fmt.Sprint(pid) {
				return fmt.Errorf("%s is of pid %s", pidFile, text)
			}
			return nil
		},
	}
}
