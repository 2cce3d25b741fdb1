package nodes

import (
	"fmt"
	"strings"
	"testing"
)

func TestTexts(t *testing.T) {
	var held Texts
	one := held.One(strings.Clone("node-1"))
	list := held.All([]string{strings.Clone("node-1")})
	pairs := held.pairs(map[string]string{"node-1": "node-1"})
	if one != "node-1" || list[0] != one || pairs["node-1"] != one || len(held.held) != 1 {
		t.Errorf("%q, %q, %q, %d texts", one, list, pairs, len(held.held))
	}
	for i := range maxTexts {
		held.One(fmt.Sprint(i))
	}
	if len(held.held) > maxTexts {
		t.Errorf("%d texts are held", len(held.held))
	}
}
