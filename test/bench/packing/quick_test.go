package main

import (
	"testing"

	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// The quick mode on a real control plane: ours packs, with one replica and with
// two, and the default scheduler does not.
func TestQuickModeShowsTheOrder(t *testing.T) {
	log.SetLogger(klog.Logger{})
	if err := bench(t.Context(), options{mode: quick, check: true, reports: t.TempDir()}); err != nil {
		t.Fatal(err)
	}
}
