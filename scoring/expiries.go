package scoring

import (
	"container/heap"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// expiry is the end of a reservation, or of the time a pod's target counts.
type expiry struct {
	at          time.Time
	reservation types.UID
	pod         types.UID
}

// expiries is a heap, soonest first.
type expiries []expiry

func (e expiries) Len() int           { return len(e) }
func (e expiries) Less(i, j int) bool { return e[i].at.Before(e[j].at) }
func (e expiries) Swap(i, j int)      { e[i], e[j] = e[j], e[i] }

// Push implements heap.Interface.
func (e *expiries) Push(x any) { *e = append(*e, x.(expiry)) }

// Pop implements heap.Interface.
func (e *expiries) Pop() any {
	last := len(*e) - 1
	x := (*e)[last]
	*e = (*e)[:last]
	return x
}

// add notes an end.
func (e *expiries) add(one expiry) { heap.Push(e, one) }

// next takes one out that is over at now, if there is any.
func (e *expiries) next(now time.Time) (one expiry, over bool) {
	if len(*e) == 0 || now.Before((*e)[0].at) {
		return expiry{}, false
	}
	return heap.Pop(e).(expiry), true
}
