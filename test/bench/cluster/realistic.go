package cluster

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

const (
	// labelsPerNode and imagesPerNode are what large nodes have; kubelets report 50
	// images by default (nodeStatusMaxImages).
	labelsPerNode, imagesPerNode = 60, 50
	// imagesInCluster is how many different images there are. Each has two names,
	// by digest and by tag.
	imagesInCluster = 400
	// gpusPerNode are on each node; gpuPodsPerNode of its pods use one each.
	gpusPerNode, gpuPodsPerNode = 8, 4
)

// created is when everything was created: long ago.
var created = metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))

// TrainerFile is the path in the repository of a pod as users submit it.
var TrainerFile = filepath.Join("webhook", "testdata", "trainer.json")

// Realistic generates nodes and pods as large as those of a production cluster:
// nodes with 60 labels and 50 images, and pods with everything that users,
// controllers and kubelets write into them.
type Realistic struct{ trainer corev1.Pod }

// NewRealistic reads what pods are made from in the repository at root.
func NewRealistic(root string) (*Realistic, error) {
	data, err := os.ReadFile(filepath.Join(root, TrainerFile))
	if err != nil {
		return nil, fmt.Errorf("reading the pod to be multiplied: %w", err)
	}
	r := &Realistic{}
	if err := json.Unmarshal(data, &r.trainer); err != nil {
		return nil, fmt.Errorf("decoding %s: %w", TrainerFile, err)
	}
	return r, nil
}

// Node returns the i-th node with a status as of a heartbeat.
func (r *Realistic) Node(i int, heartbeat time.Time) *corev1.Node {
	name := NodeName(i)
	n := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, UID: types.UID(fmt.Sprintf("7d0c5a52-2c5e-4d1b-9a51-%012d", i)), CreationTimestamp: created,
			Labels: map[string]string{
				corev1.LabelHostname: name, corev1.LabelOSStable: "linux", corev1.LabelArchStable: "amd64",
				corev1.LabelTopologyZone: fmt.Sprintf("region-1%c", 'a'+i%3), corev1.LabelInstanceTypeStable: "gpu8.24xlarge",
			},
			Annotations: map[string]string{"node.alpha.kubernetes.io/ttl": "0", "volumes.kubernetes.io/controller-managed-attach-detach": "true"},
		},
		Spec: corev1.NodeSpec{PodCIDR: fmt.Sprintf("10.%d.%d.0/24", i/256, i%256), ProviderID: "cloud:///region-1/" + name},
		Status: corev1.NodeStatus{
			Capacity: nodeResources("96", "1164Gi"), Allocatable: nodeResources("95500m", "1152Gi"),
			Addresses: []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: hostIP(i)}, {Type: corev1.NodeHostName, Address: name}},
			NodeInfo: corev1.NodeSystemInfo{
				MachineID: fmt.Sprintf("%032x", i), SystemUUID: fmt.Sprintf("%032x", i), BootID: fmt.Sprintf("%032x", i),
				KernelVersion: "6.8.0-1029-cloud", OSImage: "Ubuntu 24.04.3 LTS", ContainerRuntimeVersion: "containerd://2.1.4",
				KubeletVersion: "v1.37.2", OperatingSystem: "linux", Architecture: "amd64",
			},
		},
	}
	for j := len(n.Labels); j < labelsPerNode; j++ {
		n.Labels[fmt.Sprintf("feature.node.kubernetes.io/cpu-feature-%02d", j)] = "true"
	}
	for j := range imagesPerNode {
		n.Status.Images = append(n.Status.Images, image(i*7+j))
	}
	SetHeartbeat(n, heartbeat)
	return n
}

func nodeResources(cpu, memory string) corev1.ResourceList {
	return corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory), corev1.ResourcePods: resource.MustParse("110"),
		corev1.ResourceEphemeralStorage: resource.MustParse("1900Gi"), GPU: *resource.NewQuantity(gpusPerNode, resource.DecimalSI),
	}
}

func image(i int) corev1.ContainerImage {
	i %= imagesInCluster
	name := fmt.Sprintf("registry.example.com/research/image-%03d", i)
	return corev1.ContainerImage{Names: []string{fmt.Sprintf("%s@sha256:%064x", name, i), name + ":v81"}, SizeBytes: int64(50+i) << 20}
}

func hostIP(i int) string { return fmt.Sprintf("172.16.%d.%d", i/256%256, i%256) }

// SetHeartbeat writes a node's conditions as its kubelet does with every status.
func SetHeartbeat(n *corev1.Node, heartbeat time.Time) {
	n.Status.Conditions = nil
	for _, c := range []struct {
		kind    corev1.NodeConditionType
		status  corev1.ConditionStatus
		reason  string
		message string
	}{
		{corev1.NodeMemoryPressure, corev1.ConditionFalse, "KubeletHasSufficientMemory", "kubelet has sufficient memory available"},
		{corev1.NodeDiskPressure, corev1.ConditionFalse, "KubeletHasNoDiskPressure", "kubelet has no disk pressure"},
		{corev1.NodePIDPressure, corev1.ConditionFalse, "KubeletHasSufficientPID", "kubelet has sufficient PID available"},
		{corev1.NodeReady, corev1.ConditionTrue, "KubeletReady", "kubelet is posting ready status"},
	} {
		n.Status.Conditions = append(n.Status.Conditions, corev1.NodeCondition{
			Type: c.kind, Status: c.status, Reason: c.reason, Message: c.message,
			LastHeartbeatTime: metav1.NewTime(heartbeat), LastTransitionTime: created,
		})
	}
}
