package explain

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/gpu-binpacker/gpu-binpacker/config"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/demand"
)

// checkResources finds mistakes in quantities, which decoding reports without
// their place or not at all.
func (d *document) checkResources(gpus config.Resources) error {
	decoder := json.NewDecoder(bytes.NewReader(d.raw))
	decoder.UseNumber()
	var tree any
	if err := decoder.Decode(&tree); err != nil {
		return err
	}
	c := resourceCheck{gpus: gpus}
	c.walk("", tree)
	return errors.Join(c.errs...)
}

type resourceCheck struct {
	gpus config.Resources
	errs []error
}

func (c *resourceCheck) add(format string, args ...any) {
	c.errs = append(c.errs, fmt.Errorf(format, args...))
}

// walk looks for resources, in the order of the fields' names.
func (c *resourceCheck) walk(path string, value any) {
	switch v := value.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			child := strings.TrimPrefix(path+"."+key, ".")
			if resources, ok := v[key].(map[string]any); ok && key == "resources" {
				c.resources(child, resources)
			}
			c.walk(child, v[key])
		}
	case []any:
		for i := range v {
			c.walk(fmt.Sprintf("%s[%d]", path, i), v[i])
		}
	}
}

// resources checks what a container asks for.
func (c *resourceCheck) resources(path string, resources map[string]any) {
	limits := c.quantities(path+".limits", resources["limits"])
	requests := c.quantities(path+".requests", resources["requests"])
	for _, name := range slices.Sorted(maps.Keys(requests)) {
		limit, limited := limits[name]
		request := requests[name]
		switch {
		case !c.gpus.IsGPU(name):
		case !limited:
			c.add("%s.limits: has no %s, though it is requested, and the API server refuses that; add the limit %s", path, name, &request)
		case limit.Cmp(request) != 0:
			c.add("%s.requests[%s]: is %s, but the limit is %s; GPUs need equal ones", path, name, &request, &limit)
		}
	}
}

// quantities checks one list of resources and returns the good ones.
func (c *resourceCheck) quantities(path string, value any) map[string]resource.Quantity {
	list, _ := value.(map[string]any)
	good := map[string]resource.Quantity{}
	for _, name := range slices.Sorted(maps.Keys(list)) {
		text := fmt.Sprint(list[name])
		q, err := resource.ParseQuantity(text)
		switch {
		case err != nil:
			c.add("%s[%s]: %q is no quantity; write a number with an optional unit, such as 500m, 8 or 64Gi", path, name, text)
		case q.Sign() < 0:
			c.add("%s[%s]: %q is negative; write a quantity of at least 0", path, name, text)
		case c.gpus.IsGPU(name) && !demand.IsWhole(q):
			c.add("%s[%s]: %q is no whole number; GPUs are asked for one by one", path, name, text)
		default:
			good[name] = q
		}
	}
	return good
}
