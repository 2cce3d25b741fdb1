package explain

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/gpu-binpacker/gpu-binpacker/cli/terminal"
)

// requestText lists requests, GPUs and other extended resources first.
func requestText(requests corev1.ResourceList) string {
	native := func(name corev1.ResourceName) int {
		if strings.Contains(string(name), "/") {
			return 0
		}
		return 1
	}
	names := slices.SortedFunc(maps.Keys(requests), func(a, b corev1.ResourceName) int {
		return cmp.Or(cmp.Compare(native(a), native(b)), cmp.Compare(a, b))
	})
	var parts []string
	for _, name := range names {
		q := requests[name]
		if !q.IsZero() {
			parts = append(parts, q.String()+" "+string(name))
		}
	}
	if len(parts) == 0 {
		return "nothing"
	}
	return strings.Join(parts, ", ")
}

// amount writes an amount of a resource: CPU from millicores, memory from bytes,
// in GiB with one decimal when it is not whole.
func amount(name corev1.ResourceName, value int64) string {
	switch name {
	case corev1.ResourceCPU:
		return resource.NewMilliQuantity(value, resource.DecimalSI).String()
	case corev1.ResourceMemory, corev1.ResourceEphemeralStorage:
		return strings.TrimSuffix(strconv.FormatFloat(float64(value)/(1<<30), 'f', 1, 64), ".0") + "Gi"
	default:
		return terminal.Decimal(value)
	}
}

// nameOf is the name of an object that may get it only when it is stored.
func nameOf(name, generateName string) string {
	if name == "" && generateName != "" {
		return generateName + "*"
	}
	return name
}

// namesWithin lists as many names as have room, one at least.
func namesWithin(names []string, room int) string {
	text := names[0]
	for i, name := range names[1:] {
		more := ""
		if i+2 < len(names) {
			more = ", ..."
		}
		if len(text)+len(", "+name+more) > room {
			return text + ", ..."
		}
		text += ", " + name
	}
	return text
}
