package nodes

import "sync"

// Texts holds each of the texts that thousands of objects have in common once: names
// of nodes, namespaces and images, labels.
type Texts struct {
	mu   sync.Mutex
	held map[string]string
}

// maxTexts is when all are forgotten, so that those that are no longer in use do not
// stay for ever: 15,000 nodes with a name and a few labels and images of their own.
const maxTexts = 200_000

// One returns a text that is the same as t.
func (t *Texts) One(text string) string {
	if text == "" {
		return ""
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.locked(text)
}

// All returns texts that are the same as those in list, in a list of their own.
func (t *Texts) All(list []string) []string {
	if len(list) == 0 {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	out := make([]string, len(list))
	for i, text := range list {
		out[i] = t.locked(text)
	}
	return out
}

// pairs returns a map that is the same as m.
func (t *Texts) pairs(m map[string]string) map[string]string {
	if m == nil {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	out := make(map[string]string, len(m))
	for key, value := range m {
		out[t.locked(key)] = t.locked(value)
	}
	return out
}

func (t *Texts) locked(text string) string {
	if held, ok := t.held[text]; ok {
		return held
	}
	if t.held == nil || len(t.held) >= maxTexts {
		t.held = map[string]string{}
	}
	t.held[text] = text
	return text
}
