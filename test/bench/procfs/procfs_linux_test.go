package procfs

import (
	"os"
	"testing"
	"time"
)

// Of this process, which has used something.
func TestOwn(t *testing.T) {
	memory, err := MemoryOf(os.Getpid())
	if err != nil || memory.RSS < 1<<20 || memory.Peak < memory.RSS/2 {
		t.Errorf("%+v, %v", memory, err)
	}
	before, err := CPU(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	for start := time.Now(); time.Since(start) < 10*time.Second; {
		if after, err := CPU(os.Getpid()); err != nil || after > before {
			return
		}
	}
	t.Error("ten seconds of work took no CPU")
}
