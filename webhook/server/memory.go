package server

import (
	"bytes"
	"context"

	"golang.org/x/sync/semaphore"
)

// A request gets its memory before its body is read, by how long the body says that it
// is, and gives back what it does not need once it is known. Small requests have a share
// of their own: a semaphore serves those who wait in the order in which they came, so a
// large request that waits for most of it would hold up all that came later.

const (
	// memoryBudget bounds what all requests under way may take together, by estimate: what
	// the Deployment's memory limit leaves of the index and of the other bounds, see
	// docs/security.md. smallBudget is the part of it for small requests, enough for 64
	// reviews of 8 KB, and largeBudget is that for all others.
	memoryBudget = smallBudget + largeBudget
	smallBudget  = 32 << 20
	largeBudget  = 64 << 20
	// maxMemory is the most that one request may take: a usual pod of the largest size that
	// is steered, maxPodBytes of package webhook, takes three quarters of it.
	maxMemory = 64 << 20
	// smallBody is how long the body of a small request is at most. A review of a usual pod
	// takes a sixth.
	smallBody = 64 << 10
	// smallMemory is what a small request may take at most.
	smallMemory = smallBody * bytesPerByte
	// bytesPerByte is what the estimate of a usual pod is per byte of its body, which is
	// not known before the body is: 47 for webhook/testdata/trainer.json, with room for others.
	bytesPerByte = 64
	// leastMemory is what each request takes at least: its buffers and stacks.
	leastMemory = 64 << 10
	// movingMemory is what a small request holds of the small ones' memory while it waits
	// for more than any such may: its body, in a buffer that may have grown to twice as much.
	// 256 can wait; an API server has at most 200 creations under way by default.
	movingMemory = 2 * smallBody
	// bytesPerElement is about the size of the largest list element of a pod, a
	// container (unsafe.Sizeof(corev1.Container{}) and its slice's growth). JSON
	// needs only three bytes for one.
	bytesPerElement = 1200
)

// estimate returns how much memory a body may take when decoded: its bytes, kept
// three times (as received, as raw parts, as the texts in the decoded ones), and
// a list element for every comma.
func estimate(body []byte) int64 {
	return int64(3*len(body) + bytesPerElement*bytes.Count(body, []byte{','}))
}

// expected returns how much memory a body of that length will probably take. One of unknown
// length (below zero) is read as if it were small until it shows that it is not.
func expected(length int64) int64 {
	if length < 0 {
		return smallMemory
	}
	return min(max(length*bytesPerByte, leastMemory), maxMemory)
}

// memory is what all requests may take together.
type memory struct{ small, large *semaphore.Weighted }

func newMemory() *memory {
	return &memory{small: semaphore.NewWeighted(smallBudget), large: semaphore.NewWeighted(largeBudget)}
}

// share is what one request holds of the memory; the zero value is nothing.
type share struct {
	of    *semaphore.Weighted
	bytes int64
}

// claim waits for the memory of a request with a body of that length.
func (m *memory) claim(ctx context.Context, length int64) (share, error) {
	s := share{of: m.large, bytes: expected(length)}
	if length <= smallBody {
		s.of = m.small
	}
	if err := s.of.Acquire(ctx, s.bytes); err != nil {
		return share{}, err
	}
	return s, nil
}

// correct makes the share as large as is needed. A small request that needs more than any
// such may waits for it among the large ones, and holds little of the small ones' memory
// meanwhile.
func (m *memory) correct(ctx context.Context, s *share, needed int64) error {
	needed = max(needed, leastMemory)
	if s.of == m.small && needed > smallMemory {
		s.shrink(movingMemory)
		if err := m.large.Acquire(ctx, needed); err != nil {
			return err
		}
		s.release()
		*s = share{of: m.large, bytes: needed}
		return nil
	}
	if needed > s.bytes {
		if err := s.of.Acquire(ctx, needed-s.bytes); err != nil {
			return err
		}
		s.bytes = needed
	}
	s.shrink(needed)
	return nil
}

// shrink gives back what is more than that.
func (s *share) shrink(to int64) {
	if s.bytes > to {
		s.of.Release(s.bytes - to)
		s.bytes = to
	}
}

// release gives all of it back.
func (s *share) release() {
	if s.of != nil {
		s.of.Release(s.bytes)
	}
	*s = share{}
}
