package scoring

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// maxAmount caps a single quantity: 2^50 is a pebibyte of memory or a quadrillion
// of anything else, more than a node has, and 8,192 of them can be summed in an
// int64. A larger quantity therefore fits nowhere and overflows nothing.
const maxAmount = 1 << 50

// amounts are quantities by resource name: CPU in millicores, memory and storage
// in bytes, everything else in pieces. They are sorted by name, hold no zeros and
// are never changed in place, so they can be shared.
type amounts []amount

type amount struct {
	name  corev1.ResourceName
	value int64
}

// newAmounts converts a list of quantities, rounding up, negative ones to zero.
func newAmounts(list corev1.ResourceList) amounts {
	out := make(amounts, 0, len(list))
	for name, q := range list {
		if v := amountOf(name, q); v > 0 {
			out = append(out, amount{name, v})
		}
	}
	slices.SortFunc(out, func(a, b amount) int { return cmp.Compare(a.name, b.name) })
	return out
}

// amountOf converts one quantity, clamped to 0..maxAmount.
func amountOf(name corev1.ResourceName, q resource.Quantity) int64 {
	switch {
	case q.Sign() <= 0:
		return 0
	case name == corev1.ResourceCPU && q.CmpInt64(maxAmount/1000) < 0:
		return q.MilliValue()
	case name != corev1.ResourceCPU && q.CmpInt64(maxAmount) < 0:
		return q.Value()
	default:
		return maxAmount
	}
}

// get returns the amount of a resource, zero when there is none.
func (a amounts) get(name corev1.ResourceName) int64 {
	// A handful of entries: a scan is faster than a map.
	for i := range a {
		if a[i].name == name {
			return a[i].value
		}
	}
	return 0
}

// plus returns a + sign*b.
func (a amounts) plus(sign int64, b amounts) amounts {
	out := make(amounts, 0, len(a)+len(b))
	for len(a) > 0 || len(b) > 0 {
		switch {
		case len(b) == 0 || len(a) > 0 && a[0].name < b[0].name:
			out, a = append(out, a[0]), a[1:]
		case len(a) == 0 || b[0].name < a[0].name:
			out, b = append(out, amount{b[0].name, sign * b[0].value}), b[1:]
		default:
			if v := a[0].value + sign*b[0].value; v != 0 {
				out = append(out, amount{a[0].name, v})
			}
			a, b = a[1:], b[1:]
		}
	}
	return out
}
