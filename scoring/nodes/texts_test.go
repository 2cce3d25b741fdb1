package nodes

import (
	"fmt"
	"strings"
	"testing"
	"unsafe"
)

func TestTexts(t *testing.T) {
	held := NewTexts(MaxTextBytes)
	one := held.One(strings.Clone("node-1"))
	list, fresh := held.All([]string{strings.Clone("node-1"), "node-2"})
	pairs := held.pairs(map[string]string{"node-1": strings.Clone("node-1")})
	if one != "node-1" || list[0] != one || pairs["node-1"] != one || len(held.recent.young) != 2 {
		t.Errorf("%q, %q, %q, %d texts", one, list, pairs, len(held.recent.young))
	}
	if !same(one, list[0]) || !same(one, pairs["node-1"]) {
		t.Error("the same text is there more than once")
	}
	if want := 2*TextHeader + len("node-2"); fresh != want { // node-1 was there
		t.Errorf("the list takes %d bytes, want %d", fresh, want)
	}
}

// Whatever comes, the texts take no more than they may, and one that is asked for again
// and again stays the same.
func TestTextsAreBounded(t *testing.T) {
	const maxBytes = 100 << 10
	held := NewTexts(maxBytes)
	used := held.One(strings.Clone("in use"))
	for i := range 20_000 {
		text := fmt.Sprint(i, strings.Repeat("x", i%longestText))
		if got := held.One(text); got != text {
			t.Fatalf("%q became %q", text, got)
		}
		if i%100 == 0 && !same(held.One(strings.Clone("in use")), used) {
			t.Fatalf("a text in use was forgotten after %d others", i)
		}
		if held.recent.bytes > maxBytes {
			t.Fatalf("%d bytes are held", held.recent.bytes)
		}
	}
	bytes := 0
	for _, generation := range []map[string]string{held.recent.young, held.recent.old} {
		for text := range generation {
			bytes += len(text) + textCost
		}
	}
	if bytes > 2*maxBytes || bytes < maxBytes/2 {
		t.Errorf("%d bytes are held, want about twice %d", bytes, maxBytes)
	}
}

// The longest label key with a domain is shared, what is longer than any name is not held.
func TestLongTextsAreNotHeld(t *testing.T) {
	held := NewTexts(MaxTextBytes)
	key := strings.Repeat("d", 253) + "/" + strings.Repeat("n", 63)
	if !same(held.One(strings.Clone(key)), held.One(strings.Clone(key))) {
		t.Error("a label key is there twice")
	}
	long := strings.Repeat("x", longestText+1)
	if got := held.One(long); got != long || len(held.recent.young) != 1 {
		t.Errorf("%d texts are held", len(held.recent.young))
	}
}

// same tells whether two texts are one in memory.
func same(a, b string) bool { return unsafe.StringData(a) == unsafe.StringData(b) }
