package webhook

import (
	"encoding/json"
	"maps"
	"slices"
	"testing"
)

// splicer makes new pods out of the golden ones: it takes one and puts parts of
// others into it. Changing bytes of JSON at random would rarely leave a pod.
type splicer struct {
	pods  []any
	parts []part
}

// part is a value of a golden pod with its place: keys and, for lists, indices.
type part struct {
	path  []any
	value any
}

func newSplicer(t testing.TB) *splicer {
	t.Helper()
	s := &splicer{}
	cases := goldenCases(t)
	for _, name := range slices.Sorted(maps.Keys(cases)) {
		var pod map[string]any
		if json.Unmarshal(cases[name].object(), &pod) == nil && pod != nil {
			s.pods = append(s.pods, pod)
			s.collect(nil, pod)
		}
	}
	return s
}

func (s *splicer) collect(path []any, value any) {
	if len(path) > 1 {
		s.parts = append(s.parts, part{slices.Clone(path), value})
	}
	switch value := value.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(value)) {
			s.collect(append(path, key), value[key])
		}
	case []any:
		for i := range value {
			s.collect(append(path, i), value[i])
		}
	}
}

// Numbers that a part may get instead of its own.
var oddNumbers = []any{0, 1, -1, -9, 2, 50, 99, 100, 101, 1 << 20, -1 << 31, 1<<31 - 1}

// splice turns bytes into a pod: two say which golden pod, and each further four
// which part to change, and how.
func (s *splicer) splice(data []byte) []byte {
	next := func() int {
		if len(data) == 0 {
			return 0
		}
		b := data[0]
		data = data[1:]
		return int(b)
	}
	pod := clone(s.pods[(next()<<8+next())%len(s.pods)])
	for len(data) > 0 {
		how, chosen := next(), s.parts[(next()<<8+next())%len(s.parts)]
		switch how % 8 {
		case 0:
			pod = set(pod, chosen.path, nil)
		case 1:
			pod = set(pod, chosen.path, map[string]any{})
		case 2:
			pod = set(pod, chosen.path, []any{})
		case 3, 4:
			value := chosen.value
			if _, ok := value.(float64); ok {
				value = oddNumbers[next()%len(oddNumbers)]
			}
			pod = set(pod, chosen.path, value)
		case 5: // one more element, if it is in a list
			path := slices.Clone(chosen.path)
			for i := range path {
				if _, ok := path[i].(int); ok {
					path[i] = 1 << 20
				}
			}
			pod = set(pod, path, chosen.value)
		default:
			pod = set(pod, chosen.path, chosen.value)
		}
	}
	// The API server sends both, whatever the user does.
	for _, key := range []string{"metadata", "spec"} {
		if object := pod.(map[string]any); object[key] == nil {
			object[key] = map[string]any{}
		}
	}
	text, err := json.Marshal(pod)
	if err != nil {
		panic(err)
	}
	return text
}

// set returns the object with the value at the path, whose parents are made where
// they are missing. An index beyond the end of a list appends.
func set(object any, path []any, value any) any {
	if len(path) == 0 {
		return clone(value)
	}
	switch step := path[0].(type) {
	case string:
		parent, ok := object.(map[string]any)
		if !ok || parent == nil {
			parent = map[string]any{}
		}
		parent[step] = set(parent[step], path[1:], value)
		return parent
	case int:
		list, _ := object.([]any)
		if step >= len(list) {
			return append(list, set(nil, path[1:], value))
		}
		list[step] = set(list[step], path[1:], value)
		return list
	}
	return object
}

func clone(value any) any {
	switch value := value.(type) {
	case map[string]any:
		out := map[string]any{}
		for k, v := range value {
			out[k] = clone(v)
		}
		return out
	case []any:
		out := make([]any, len(value))
		for i, v := range value {
			out[i] = clone(v)
		}
		return out
	default:
		return value
	}
}
