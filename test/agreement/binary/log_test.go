package binary

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"regexp"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// What kube-scheduler logs, the same from 1.33 to 1.37. Source: k8s.io/kubernetes
// pkg/scheduler, prioritizeNodes of schedule_one.go and eventhandlers.go.
const (
	scoreMessage = "Plugin scored node for pod"
	totalMessage = "Calculated node's final score for pod"
)

// The parts of a line: its message, and values that follow by name.
var (
	messages = regexp.MustCompile(`"(` + scoreMessage + `|` + totalMessage +
		`|(?:Add|Update|Delete) event for (?:node|scheduled pod|unscheduled pod))" (.*)$`)
	pairs = regexp.MustCompile(`(\w+)=(?:"([^"]*)"|(\S+))`)
)

const (
	// waitTimeout limits each wait for the scheduler: more than a minute passes only
	// when something is broken.
	waitTimeout  = time.Minute
	waitInterval = 5 * time.Millisecond
)

// nodeScores are the scores of one node as the log has them: each plugin's
// normalised score times its weight, and their sum.
type nodeScores struct {
	weighted map[string]int64
	total    int64
}

// schedulerLog follows the log of a kube-scheduler.
type schedulerLog struct {
	file *os.File
	// rest is the beginning of a line whose end is not written yet.
	rest []byte
	// scores: namespace/name of a pod -> name of a node.
	scores map[string]map[string]*nodeScores
	// events counts the events that the scheduler has begun to handle, by kind and
	// object: "Update event for node n1".
	events map[string]int
}

func openLog(path string) (*schedulerLog, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	return &schedulerLog{file: file, scores: map[string]map[string]*nodeScores{}, events: map[string]int{}}, nil
}

// read takes in what was written since the last call.
func (l *schedulerLog) read() error {
	text, err := io.ReadAll(l.file)
	if err != nil {
		return err
	}
	l.rest = append(l.rest, text...)
	for {
		line, rest, found := bytes.Cut(l.rest, []byte("\n"))
		if !found {
			return nil
		}
		if err := l.readLine(line); err != nil {
			return fmt.Errorf("the scheduler's log: %q: %w", line, err)
		}
		l.rest = rest
	}
}

func (l *schedulerLog) readLine(line []byte) error {
	parts := messages.FindSubmatch(line)
	if parts == nil {
		return nil
	}
	named := map[string]string{}
	for _, m := range pairs.FindAllSubmatch(parts[2], -1) {
		named[string(m[1])] = string(m[2]) + string(m[3])
	}
	message := string(parts[1])
	if message != scoreMessage && message != totalMessage {
		l.events[message+" "+named["node"]+named["pod"]]++
		return nil
	}
	score, err := strconv.ParseInt(named["score"], 10, 64)
	if err != nil {
		return err
	}
	node := l.node(named["pod"], named["node"])
	if message == scoreMessage {
		return node.add(named["plugin"], score)
	}
	node.total = score
	return nil
}

// node returns the scores of a pod on a node, to be filled.
func (l *schedulerLog) node(pod, node string) *nodeScores {
	if l.scores[pod] == nil {
		l.scores[pod] = map[string]*nodeScores{}
	}
	if l.scores[pod][node] == nil {
		l.scores[pod][node] = &nodeScores{weighted: map[string]int64{}}
	}
	return l.scores[pod][node]
}

// add notes a plugin's score. A second one means that the pod was scheduled twice,
// on two states of the cluster of which only one was compared.
func (s *nodeScores) add(plugin string, score int64) error {
	if _, ok := s.weighted[plugin]; ok {
		return fmt.Errorf("a second score of %s", plugin)
	}
	s.weighted[plugin] = score
	return nil
}

// waitEvents waits until the scheduler has begun to handle that many events of a
// kind about an object. Events of one kind of object are handled in order: when it
// begins with one, it has finished with all before.
func (l *schedulerLog) waitEvents(ctx context.Context, event, object string, count int) error {
	key := event + " " + object
	err := wait.PollUntilContextTimeout(ctx, waitInterval, waitTimeout, true, func(context.Context) (bool, error) {
		err := l.read()
		return l.events[key] >= count, err
	})
	if err != nil {
		return fmt.Errorf("waiting for %q in the scheduler's log, %d of %d times: %w", key, l.events[key], count, err)
	}
	return nil
}
