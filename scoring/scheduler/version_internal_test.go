package scheduler

import (
	"testing"

	"github.com/gpu-binpacker/gpu-binpacker/config"
)

func minor(n uint) config.MinorVersion { return config.MinorVersion{Major: 1, Minor: n} }

func TestFormulasOf(t *testing.T) {
	for version, want := range map[config.MinorVersion]Formulas{
		minor(33):            {},
		minor(34):            {podLevelResources: true},
		minor(35):            {podLevelResources: true},
		minor(36):            {podLevelResources: true, balanceGain: true, imageVolumes: true},
		minor(37):            {podLevelResources: true, balanceGain: true, imageVolumes: true, volumesInDivisor: true},
		minor(99):            {podLevelResources: true, balanceGain: true, imageVolumes: true, volumesInDivisor: true},
		{Major: 2, Minor: 0}: {podLevelResources: true, balanceGain: true, imageVolumes: true, volumesInDivisor: true},
	} {
		if got := formulasOf(version); got != want {
			t.Errorf("%v: got %+v, want %+v", version, got, want)
		}
	}
}
