package main

import (
	"os"

	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/metrics/prometheus/clientgo" // client metrics, as in kube-scheduler
	_ "k8s.io/component-base/metrics/prometheus/version"  // version metric, as in kube-scheduler
	"k8s.io/kubernetes/cmd/kube-scheduler/app"
)

func main() {
	os.Exit(cli.Run(app.NewSchedulerCommand(app.WithPlugin(pluginName, newPlugin))))
}
