// A made-up cluster, as a state file.

// largeCluster has so many nodes with 4 or 8 GPUs; two of three run a pod with 1 to
// 4 of them.
export function largeCluster(count) {
  const nodes = [];
  const pods = [];
  for (let i = 0; i < count; i++) {
    const name = `ip-10-0-${i >> 8}-${i & 255}.eu-central-1.compute.internal`;
    nodes.push({
      metadata: { name, labels: { 'kubernetes.io/hostname': name, 'node.kubernetes.io/instance-type': 'p5.48xlarge' } },
      status: {
        allocatable: { cpu: '96', memory: '1152Gi', pods: '110', 'nvidia.com/gpu': i % 5 === 0 ? '4' : '8' },
        conditions: [{ type: 'Ready', status: 'True' }],
      },
    });
    if (i % 3 !== 0) pods.push(pod(`train-${i}`, name, String(1 + (i % 4))));
  }
  return { apiVersion: 'gpu-binpacker.io/v1alpha1', kind: 'State', takenAt: '2026-01-31T12:00:00Z', nodes, pods };
}

function pod(name, nodeName, gpus) {
  const requests = { cpu: '4', memory: '32Gi', 'nvidia.com/gpu': gpus };
  return {
    metadata: { namespace: 'team-a', name, uid: name, creationTimestamp: '2026-01-31T09:00:00Z' },
    spec: {
      schedulerName: 'default-scheduler',
      nodeName,
      containers: [{ name: 'main', image: 'registry.example.com/train:1', resources: { requests, limits: { 'nvidia.com/gpu': gpus } } }],
    },
    status: { phase: 'Running' },
  };
}
