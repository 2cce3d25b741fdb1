package programs

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
)

// progressInterval is how often a running build says how far it is, so that it never
// seems to hang.
const progressInterval = 10 * time.Second

// progress tells how far go commands are, from what they say on standard error, which
// is written to it.
type progress struct {
	out        io.Writer
	start      time.Time
	quit, done chan struct{}

	mu sync.Mutex // guards all below
	// step is what is being done, downloaded how many modules came, compiled how many
	// of needed packages.
	step                         string
	downloaded, compiled, needed int
	// rest is the beginning of a line, messages are the lines that are no progress.
	rest, messages []byte
}

// startProgress writes a line to out at every interval until stop.
func startProgress(out io.Writer, interval time.Duration) *progress {
	p := &progress{out: out, start: time.Now(), quit: make(chan struct{}), done: make(chan struct{})}
	go func() {
		defer close(p.done)
		ticker := time.NewTicker(interval)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				fmt.Fprintln(out, p.line())
			case <-p.quit:
				return
			}
		}
	}()
	return p
}

// stop ends the lines and waits for one under way.
func (p *progress) stop() {
	close(p.quit)
	<-p.done
}

// begin names what is being done.
func (p *progress) begin(step string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.step = step
}

// beginCompiling says that so many packages are needed. Those that were compiled before
// are among them, so it is an upper limit.
func (p *progress) beginCompiling(needed int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.step, p.needed = "compiling", needed
}

// line is one line of progress.
func (p *progress) line() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	line := "  " + p.step
	if p.needed > 0 {
		line += fmt.Sprintf(", %d of at most %d packages", p.compiled, p.needed)
	}
	if p.downloaded > 0 && p.needed == 0 {
		line += fmt.Sprintf(", %d modules downloaded", p.downloaded)
	}
	return line + fmt.Sprintf(", %s so far", time.Since(p.start).Round(time.Second))
}

// Write takes what a go command says: a line for each module that it downloads and for
// each package that it compiles, or what is wrong.
func (p *progress) Write(text []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rest = append(p.rest, text...)
	for {
		line, rest, whole := bytes.Cut(p.rest, []byte("\n"))
		if !whole {
			return len(text), nil
		}
		p.rest = rest
		switch {
		case bytes.HasPrefix(line, []byte("go: downloading ")):
			p.downloaded++
		case p.needed > 0 && len(line) > 0 && !bytes.ContainsAny(line, " \t:"):
			p.compiled++
		default:
			p.messages = append(append(p.messages, line...), '\n')
		}
	}
}

// text is what was said that is no progress.
func (p *progress) text() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.TrimSpace(string(p.messages) + string(p.rest))
}
