package demand

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// MaxAmount caps a single quantity: 2^50 is a pebibyte of memory or a quadrillion
// of anything else, more than a node has, and 8,192 of them can be summed in an
// int64. A larger quantity therefore fits nowhere and overflows nothing.
const MaxAmount = 1 << 50

// Amounts are quantities by resource name: CPU in millicores, memory and storage
// in bytes, everything else in pieces. They are sorted by name, hold no zeros and
// are never changed in place, so they can be shared.
type Amounts []Amount

// Amount is the quantity of one resource.
type Amount struct {
	Name  corev1.ResourceName
	Value int64
}

// NewAmounts converts a list of quantities, rounding up, negative ones to zero.
func NewAmounts(list corev1.ResourceList) Amounts {
	out := make(Amounts, 0, len(list))
	for name, q := range list {
		if v := amountOf(name, q); v > 0 {
			out = append(out, Amount{name, v})
		}
	}
	slices.SortFunc(out, func(a, b Amount) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

// amountOf converts one quantity, clamped to 0..maxAmount.
func amountOf(name corev1.ResourceName, q resource.Quantity) int64 {
	switch {
	case q.Sign() <= 0:
		return 0
	case name == corev1.ResourceCPU && q.CmpInt64(MaxAmount/1000) < 0:
		return q.MilliValue()
	case name != corev1.ResourceCPU && q.CmpInt64(MaxAmount) < 0:
		return q.Value()
	default:
		return MaxAmount
	}
}

// Get returns the amount of a resource, zero when there is none.
func (a Amounts) Get(name corev1.ResourceName) int64 {
	// A handful of entries: a scan is faster than a map.
	for i := range a {
		if a[i].Name == name {
			return a[i].Value
		}
	}
	return 0
}

// plus returns a + sign*b.
func (a Amounts) plus(sign int64, b Amounts) Amounts {
	out := make(Amounts, 0, len(a)+len(b))
	for len(a) > 0 || len(b) > 0 {
		switch {
		case len(b) == 0 || len(a) > 0 && a[0].Name < b[0].Name:
			out, a = append(out, a[0]), a[1:]
		case len(a) == 0 || b[0].Name < a[0].Name:
			out, b = append(out, Amount{b[0].Name, sign * b[0].Value}), b[1:]
		default:
			if v := a[0].Value + sign*b[0].Value; v != 0 {
				out = append(out, Amount{a[0].Name, v})
			}
			a, b = a[1:], b[1:]
		}
	}
	return out
}
