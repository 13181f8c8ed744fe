package guest

import (
	"slices"
	"strings"
	"sync"
	"time"

	"burrow.dev/burrow/internal/plaintext"
)

// Stages, in order.
const (
	stageTCP       = "tcp"
	stageBanner    = "banner"
	stageLogin     = "login"
	stageCloudInit = "cloud-init"
)

var stages = []string{stageTCP, stageBanner, stageLogin, stageCloudInit}

// consoleLine bounds what a heartbeat carries of the console.
const consoleLine = 200

// progress is where a wait stands; all targets write to it.
type progress struct {
	mu      sync.Mutex
	stage   string
	console string
	since   time.Time // that the console has said so
	last    error
}

// reached notes the furthest stage; another address that is not as far does not set it back.
func (p *progress) reached(stage string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if slices.Index(stages, stage) > slices.Index(stages, p.stage) {
		p.stage = stage
	}
}

// failed notes why an attempt at a stage ended. A lesser stage's failure does not hide a further one's.
func (p *progress) failed(stage string, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if slices.Index(stages, stage) >= slices.Index(stages, p.stage) {
		p.last = err
	}
}

func (p *progress) setConsole(line string) {
	if line = plaintext.Line(line, consoleLine); line == "" {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if line != p.console {
		p.console, p.since = line, time.Now()
	}
}

// panicked reports whether a kernel's panic has been the console's last word for so long.
func (p *progress) panicked(patience time.Duration) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.Contains(p.console, panicMark) && time.Since(p.since) >= patience
}

// panicMark is what Linux ends a panic with (kernel/panic.c).
const panicMark = "end Kernel panic - not syncing"

func (p *progress) now() (Progress, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	stage := p.stage
	if stage == "" {
		stage = stageTCP
	}
	return Progress{Stage: stage, Console: p.console}, p.last
}
