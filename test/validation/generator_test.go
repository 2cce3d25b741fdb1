package validation

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/gpu-binpacker/gpu-binpacker/config"
)

// generator makes a pod from bytes. It writes JSON by hand, so that a pod can hold
// nulls, unknown fields and values of a wrong form. Where the bytes end it takes
// the first, plain alternative.
type generator struct {
	data []byte
	// wild also makes what the API server refuses, in one pod of four.
	wild bool
}

type (
	object = map[string]any
	list   = []any
)

func newGenerator(data []byte) *generator {
	g := &generator{data: data}
	g.wild = g.next()%4 == 3
	return g
}

func (g *generator) next() int {
	if len(g.data) == 0 {
		return 0
	}
	b := g.data[0]
	g.data = g.data[1:]
	return int(b)
}

// one returns one of the values; a function stands for what it returns.
func (g *generator) one(values ...any) any {
	value := values[g.next()%len(values)]
	if build, ok := value.(func() any); ok {
		return build()
	}
	return value
}

// chance is true in about that percentage of cases.
func (g *generator) chance(percent int) bool { return g.next()*100 > (100-percent)*255 }

// sometimes sets a field to one of the values, in that percentage of pods.
func (g *generator) sometimes(o object, percent int, key string, values ...any) {
	if g.chance(percent) {
		o[key] = g.one(values...)
	}
}

// wildly does so in wild pods only.
func (g *generator) wildly(o object, key string, values ...any) {
	if g.wild {
		g.sometimes(o, 8, key, values...)
	}
}

// pod returns a pod as text.
func (g *generator) pod() []byte {
	pod := object{"metadata": g.metadata(), "spec": g.spec()}
	g.sometimes(pod, 80, "apiVersion", "v1")
	g.sometimes(pod, 80, "kind", "Pod")
	g.sometimes(pod, 10, "future", object{"a": list{1, nil}})
	g.sometimes(pod, 10, "status", object{}, nil, object{"phase": "Running", "nominatedNodeName": "g1"},
		object{"conditions": list{object{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}}})
	text, err := json.Marshal(pod)
	if err != nil {
		panic(err)
	}
	return text
}

func (g *generator) metadata() object {
	m := object{"name": "p"}
	g.sometimes(m, 30, "generateName", "train-", strings.Repeat("long-", 45))
	if m["generateName"] != nil && g.chance(70) {
		delete(m, "name")
	}
	g.sometimes(m, 50, "namespace", team, "")
	g.sometimes(m, 60, "labels", g.labels, nil, object{})
	g.sometimes(m, 60, "annotations", g.annotations, g.annotations, nil, object{})
	g.sometimes(m, 40, "ownerReferences", list{owner("apps/v1", "ReplicaSet")}, list{owner("batch/v1", "Job")},
		list{owner("apps/v1", "DaemonSet")}, list{owner("v1", "Node")}, list{}, nil)
	g.sometimes(m, 5, "finalizers", list{"batch.kubernetes.io/job-tracking"})
	g.wildly(m, "name", "Not_A_Name", "", nil)
	g.wildly(m, "namespace", "other")
	return m
}

func owner(version, kind string) object {
	return object{"apiVersion": version, "kind": kind, "name": "owner", "uid": "owner-uid", "controller": true}
}

func (g *generator) labels() any {
	m := object{}
	g.sometimes(m, 60, "app", "train", "")
	g.sometimes(m, 15, config.LabelLate, "nvidia.com-gpu", "", "stale")
	g.sometimes(m, 5, config.LabelEnabled, "false", "true")
	g.sometimes(m, 5, "kueue.x-k8s.io/queue-name", "q")
	g.sometimes(m, 5, "a/b~c", "v") // invalid, and a trap for JSON pointers
	g.wildly(m, "app", "not a value", 5, nil)
	return m
}

func (g *generator) annotations() any {
	m := object{}
	g.sometimes(m, 30, "note", "", "a~b/c", `"quoted" {}`)
	g.sometimes(m, 5, "large", strings.Repeat("x", 200<<10), strings.Repeat("x", 255<<10), strings.Repeat("x", 256<<10-30))
	if g.chance(30) { // a copy of a steered pod
		g.sometimes(m, 80, config.AnnotationSteering, "ranked", "late", "dry-run", "")
		g.sometimes(m, 80, config.AnnotationTarget, "g1", "gone", "")
		g.sometimes(m, 80, config.AnnotationAdmission, "0f5c5d2e-8d9b-4b7c-9a51-000000000009", "", strings.Repeat("u", 300))
		g.sometimes(m, 80, config.AnnotationRanking, `{"strategy":"BestFit"}`, "")
	}
	g.sometimes(m, 3, "kubernetes.io/config.mirror", "abc")
	g.wildly(m, "note", 1, nil)
	return m
}

func (g *generator) spec() object {
	s := object{"containers": g.containers("c", 1+g.next()%3)}
	g.sometimes(s, 30, "initContainers", g.initContainers, list{}, nil)
	g.sometimes(s, 60, "affinity", g.affinity, g.affinity, g.affinity, object{}, nil)
	g.sometimes(s, 20, "topologySpreadConstraints", g.constraints, list{}, nil)
	g.sometimes(s, 15, "nodeSelector", object{}, object{"topology.kubernetes.io/zone": "zone-a"}, object{"kubernetes.io/hostname": "g1"}, nil)
	g.sometimes(s, 15, "tolerations", list{object{"operator": "Exists"}}, list{object{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}}, list{}, nil)
	g.sometimes(s, 15, "schedulerName", "default-scheduler", "", "volcano", nil)
	g.sometimes(s, 6, "schedulingGates", list{object{"name": "kueue.x-k8s.io/admission"}}, list{}, nil)
	g.sometimes(s, 4, "nodeName", "g1", "")
	g.sometimes(s, 10, "hostNetwork", true, false)
	g.sometimes(s, 10, "priorityClassName", "high", "")
	g.sometimes(s, 10, "restartPolicy", "Never", "OnFailure", "Always", "")
	g.sometimes(s, 10, "overhead", object{"cpu": "250m", "memory": "64Mi"}, object{})
	g.sometimes(s, 10, "activeDeadlineSeconds", 60)
	g.sometimes(s, 10, "terminationGracePeriodSeconds", 0, 1)
	g.sometimes(s, 10, "securityContext", object{"runAsNonRoot": true, "seccompProfile": object{"type": "RuntimeDefault"}}, object{}, nil)
	g.sometimes(s, 10, "resources", object{"requests": object{"cpu": "40", "memory": "80Gi"}}, object{"limits": object{"cpu": "90"}}, object{}, nil)
	g.sometimes(s, 10, "resourceClaims", list{object{"name": "dra", "resourceClaimTemplateName": "one-gpu"}}, list{}, nil)
	g.sometimes(s, 10, "volumes", list{object{"name": "v", "emptyDir": object{}}}, nil)
	g.sometimes(s, 10, "os", object{"name": "linux"}, object{"name": "windows"}, nil)
	g.sometimes(s, 5, "future", object{"deep": list{object{"a": nil}}}, "text")
	g.wildly(s, "containers", list{}, nil, "c", list{nil})
	g.wildly(s, "ephemeralContainers", list{object{"name": "debug", "image": "i"}})
	g.wildly(s, "schedulerName", "Not A Name", 7)
	g.wildly(s, "nodeSelector", object{"a b": "c"}, list{})
	g.wildly(s, "restartPolicy", "Sometimes")
	return s
}

func (g *generator) initContainers() any {
	containers := g.containers("i", 1+g.next()%3)
	for _, c := range containers {
		g.sometimes(c.(object), 40, "restartPolicy", "Always")
	}
	return containers
}

func (g *generator) containers(prefix string, count int) list {
	var out list
	for i := range count {
		c := object{"name": fmt.Sprint(prefix, i), "image": "registry.example.com/train:v1"}
		if i == 0 || g.chance(50) {
			c["resources"] = g.one(g.resources, g.resources, g.resources, g.resources, g.resources, g.resources, object{}, nil)
		}
		g.sometimes(c, 10, "future", list{}, object{})
		g.sometimes(c, 10, "env", list{object{"name": "A", "value": "$(B) \u2028 \x00é"}}, nil, list{})
		g.sometimes(c, 10, "securityContext", object{"privileged": true}, object{"allowPrivilegeEscalation": false, "capabilities": object{"drop": list{"ALL"}}}, nil)
		g.wildly(c, "name", "", "Not A Name", "c0")
		g.wildly(c, "image", "", nil, list{})
		out = append(out, c)
	}
	return out
}

func (g *generator) resources() any {
	limits, r := object{}, object{}
	gpus := []any{"1", "1", "2", "4", "8", 1, "0", "1000m", "2e0", "1.0", "9", "1k"}
	g.sometimes(limits, 90, "nvidia.com/gpu", gpus...)
	g.sometimes(limits, 10, g.one("nvidia.com/mig-1g.5gb", "amd.com/gpu", "huawei.com/Ascend910", "nvidia.com/gpu.shared").(string), gpus...)
	g.sometimes(limits, 20, "cpu", "8", "500m", 4, "1e1")
	g.sometimes(limits, 20, "memory", "64Gi", "1e9", "128Mi")
	g.wildly(limits, "nvidia.com/gpu", "500m", "-1", "two", "", "9223372036854775807", "1e30", nil, 1.5, object{}, true)
	g.wildly(limits, "not a name", "1")
	if g.chance(95) {
		r["limits"] = limits
	}
	requests := object{}
	if gpu, ok := limits["nvidia.com/gpu"]; ok && g.chance(40) {
		requests["nvidia.com/gpu"] = gpu
	}
	g.sometimes(requests, 40, "cpu", "100m", "500m", 0, "1")
	g.sometimes(requests, 40, "memory", "64Mi", "1", 0)
	g.wildly(requests, "nvidia.com/gpu", "1", "3", "-2")
	g.sometimes(r, 60, "requests", requests, requests, requests, nil)
	g.sometimes(r, 5, "claims", list{object{"name": "dra"}}, list{})
	return r
}
