package nodes

import "sync"

// Texts holds each of the texts that thousands of objects have in common once: names
// of nodes, namespaces and images, labels.
type Texts struct {
	mu     sync.Mutex
	recent *Recent[string]
}

const (
	// MaxTextBytes is what all texts together may take, twice: see Recent. 5,000 nodes have
	// seven texts of their own each (a name and some labels) of 40 bytes, which takes two
	// thirds of it. Texts that nodes have in common are asked for all the time and stay.
	MaxTextBytes = 6 << 20
	// textCost is what an entry takes besides its text: key and value in the map with its
	// spare room, and the text's size class.
	textCost = 80
	// longestText is held: a longer one is no name of anything in Kubernetes, of an image
	// with its digest neither, and hardly anything that objects have in common.
	longestText = 512
)

// NewTexts returns texts that take at most twice as much as maxBytes.
func NewTexts(maxBytes int) *Texts { return &Texts{recent: NewRecent[string](maxBytes)} }

// One returns a text that is the same as t.
func (t *Texts) One(text string) string {
	if text == "" {
		return ""
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	text, _ = t.locked(text)
	return text
}

// All returns texts that are the same as those in list, in a list of their own, and how
// many bytes the list and those of its texts take that were not held before.
func (t *Texts) All(list []string) (all []string, bytes int) {
	if len(list) == 0 {
		return nil, 0
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	all = make([]string, len(list))
	bytes = len(list) * TextHeader
	for i, text := range list {
		var held bool
		if all[i], held = t.locked(text); !held {
			bytes += len(text)
		}
	}
	return all, bytes
}

// TextHeader is what a text takes in a list.
const TextHeader = 16

// pairs returns a map that is the same as m.
func (t *Texts) pairs(m map[string]string) map[string]string {
	if m == nil {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	out := make(map[string]string, len(m))
	for key, value := range m {
		key, _ = t.locked(key)
		out[key], _ = t.locked(value)
	}
	return out
}

// locked returns the same text, and whether it was held.
func (t *Texts) locked(text string) (same string, held bool) {
	if len(text) > longestText {
		return text, false
	}
	cost := len(text) + textCost
	if same, held = t.recent.Get(text, cost); held {
		return same, true
	}
	t.recent.Put(text, text, cost)
	return text, false
}
