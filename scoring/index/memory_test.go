package index_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gpu-binpacker/gpu-binpacker/config"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/clustertest"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/demand"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/index"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/reduced"
)

// Users who may create pods choose every byte of them, and every pod of the cluster reaches
// the index. What stays of it is measured here, in bytes of live objects.

const (
	// noise is what a measurement is wrong by.
	noise = 512 << 10
	// recordBytes is more than the index takes for a pod besides its load and its list: its
	// UID, its record and its places in maps that have grown.
	recordBytes = 1 << 10
)

// grown is by how many bytes live objects grow while something is done.
func grown(do func()) int64 {
	before := heap()
	do()
	return heap() - before
}

func heap() int64 {
	runtime.GC()
	runtime.GC() // what the first one has found to be unused
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}

// Annotations of ours are kept if they are what we write, of whatever size others make them.
func TestMemoryOfAnnotations(t *testing.T) {
	long := func(i int) string { return strings.Repeat(fmt.Sprintf("%08d", i), 250<<10/8) }
	for name, change := range map[string]func(*corev1.Pod, int){
		"steering":  func(p *corev1.Pod, i int) { p.Annotations[config.AnnotationSteering] = long(i) },
		"target":    func(p *corev1.Pod, i int) { p.Annotations[config.AnnotationTarget] = long(i) },
		"admission": func(p *corev1.Pod, i int) { p.Annotations[config.AnnotationAdmission] = long(i) },
		"target with a list that agrees": func(p *corev1.Pod, i int) {
			clustertest.SteeredTo(long(i), "u")(p)
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := clustertest.New(t, nil, clustertest.GPUNode("n", clustertest.List(clustertest.NVIDIA, "8")))
			const pods = 300
			each := func(do func(*corev1.Pod)) {
				for i := range pods {
					pod := clustertest.GPUPod(fmt.Sprintf("p%d", i), clustertest.List("cpu", "1"))
					pod.Annotations = map[string]string{}
					change(pod, i)
					do(pod)
				}
			}
			// Pods that come and go leave nothing, pods that stay what pods take.
			if left := grown(func() {
				each(func(p *corev1.Pod) { c.SetPod(p); c.DeletePod(p.UID) })
			}); left > noise {
				t.Errorf("%d bytes stay of %d pods that are gone", left, pods)
			}
			if held := grown(func() { each(c.SetPod) }); held > noise+pods*recordBytes {
				t.Errorf("%d pods take %d bytes", pods, held)
			}
			runtime.KeepAlive(c)
		})
	}
}

// manyResources asks for so many extended resources that nobody else asks for.
func manyResources(i, count int) clustertest.PodOption {
	return func(p *corev1.Pod) {
		for j := range count {
			p.Spec.Containers[0].Resources.Requests[corev1.ResourceName(fmt.Sprintf("attack.example.com/%04d-%06d", i, j))] = resource.MustParse("1")
		}
	}
}

// A pod's resources are kept as far as they count, however many there are.
func TestMemoryOfResources(t *testing.T) {
	c := clustertest.New(t, nil, clustertest.GPUNode("n", clustertest.List(clustertest.NVIDIA, "8")))
	const pods, resources = 40, 30_000
	held := grown(func() {
		for i := range pods {
			c.SetPod(clustertest.GPUPod(fmt.Sprintf("p%d", i), clustertest.List("cpu", "1"), manyResources(i, resources), clustertest.On("n")))
		}
	})
	// The load, the same as the key under which it is shared, and what else a pod takes.
	if most := int64(noise + pods*(2*demand.MaxLoadBytes+recordBytes)); held > most {
		t.Errorf("%d pods take %d bytes, want at most %d", pods, held, most)
	}
	if used := c.StateOf("n").Used; used.Requests.Get(corev1.ResourceCPU) != pods*1000 || used.Pods != pods {
		t.Errorf("%d pods and %d millicores are used, want %d and %d", used.Pods, used.Requests.Get(corev1.ResourceCPU), pods, pods*1000)
	}
}

// Nor does a node's use grow without end with what its pods ask for, and nothing of it
// stays when they go. What the node offers counts meanwhile, and other nodes count as ever.
func TestUseOfManyResourcesOnANode(t *testing.T) {
	c := clustertest.New(t, nil,
		clustertest.GPUNode("n", clustertest.List(clustertest.NVIDIA, "8", clustertest.MIG, "7", "rdma/rail", "8")), clustertest.GPUNode("m", clustertest.List(clustertest.NVIDIA, "8")))
	const pods, perPod = 500, demand.MaxResources - 2
	for i := range pods {
		c.SetPod(clustertest.GPUPod(fmt.Sprintf("p%d", i), clustertest.List("cpu", "1", clustertest.NVIDIA, "1"), manyResources(i, perPod), clustertest.On("n")))
	}
	used := c.StateOf("n").Used.Requests
	c.SetPod(clustertest.GPUPod("honest", clustertest.List(clustertest.MIG, "2", "rdma/rail", "3"), clustertest.On("n")))
	if s := c.StateOf("n"); s.Free(clustertest.MIG) != 7-2 || s.Free("rdma/rail") != 8-3 {
		t.Errorf("%d and %d are free of what the node offers, want 5 and 5", s.Free(clustertest.MIG), s.Free("rdma/rail"))
	}
	c.DeletePod("honest")
	if len(used) > 300 || used.Get(clustertest.NVIDIA) != pods || used.Get(corev1.ResourceCPU) != pods*1000 {
		t.Errorf("of %d resources use is kept, %d GPUs among it", len(used), used.Get(clustertest.NVIDIA))
	}
	// As many as a node with eight rails and the profiles of seven GPU partitions offers.
	for i := range 8 {
		c.SetPod(clustertest.GPUPod(fmt.Sprintf("q%d", i), clustertest.List("cpu", "1", clustertest.NVIDIA, "1"), manyResources(i, 14), clustertest.On("m")))
	}
	if used := c.StateOf("m").Used.Requests; len(used) != 2+8*14 {
		t.Errorf("use of %d resources is kept on a node with fewer pods, want all %d", len(used), 2+8*14)
	}
	if err := c.CheckSums(); err != nil {
		t.Error(err)
	}
	for i := range pods {
		c.DeletePod(clustertest.GPUPod(fmt.Sprintf("p%d", i), nil).UID)
	}
	if used := c.StateOf("n").Used; len(used.Requests) != 0 || used.Pods != 0 || c.Negatives() != 0 {
		t.Errorf("used after all pods are gone: %+v", used)
	}
}

// Forged terms make a pod look as if it were on its way, and list names that no node has.
func TestMemoryOfForgedLists(t *testing.T) {
	c := clustertest.New(t, nil, clustertest.GPUNode("n", clustertest.List(clustertest.NVIDIA, "8")))
	const pods, terms = 1500, 100
	forge := func() {
		for i := range pods {
			pod := clustertest.GPUPod(fmt.Sprintf("p%d", i), clustertest.List(clustertest.NVIDIA, "1"), clustertest.SteeredTo("n", "u"))
			for j := range terms {
				clustertest.SteeredTo(fmt.Sprintf("%s-%d-%d", strings.Repeat("x", 200), i, j), "u")(pod)
			}
			pod.Annotations[config.AnnotationTarget] = "n"
			c.SetPod(pod)
		}
	}
	const others = noise + 2*reduced.MaxPodTextBytes + pods*recordBytes
	if held := grown(forge); held > index.MaxListedBytes+others {
		t.Errorf("%d pods take %d bytes", pods, held)
	}
	// The lists are over with the time of their pods.
	before := heap()
	c.Clock = c.Clock.Add(c.Config.InFlight.TargetMaxAge.Duration + time.Second)
	c.Size()
	if freed := before - heap(); freed < index.MaxListedBytes/2 {
		t.Errorf("%d bytes are free when the pods do not count any more", freed)
	}
	if err := c.CheckSums(); err != nil {
		t.Error(err)
	}
}

// In a burst as large as bursts get, each pod has all of its list.
func TestListsOfABurst(t *testing.T) {
	c := clustertest.New(t, nil)
	const pods, listed = 10_000, 56
	var names []string
	for j := range listed {
		names = append(names, fmt.Sprintf("ip-10-0-%d-%d.eu-central-1.compute.internal", j, j))
		c.SetNode(clustertest.GPUNode(names[j], clustertest.List(clustertest.NVIDIA, "1000"), clustertest.WithCPU("9000", "9000Gi")))
	}
	steered := clustertest.GPUPod("p", clustertest.List(clustertest.NVIDIA, "1"))
	for _, name := range names {
		clustertest.SteeredTo(name, "u")(steered)
	}
	steered.Annotations[config.AnnotationTarget] = names[0]
	for i := range pods {
		pod := *steered
		pod.UID = types.UID(fmt.Sprint("p", i))
		c.SetPod(&pod)
	}
	if least := c.ShortestList(); least != listed {
		t.Errorf("a pod of the burst has %d of its %d nodes", least, listed)
	}
}
