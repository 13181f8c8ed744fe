package workflows

// StepNames gives the steps of a workflow in order, before its first event tells; nil for
// those whose steps depend on their input.
func StepNames(workflow string) []string {
	switch workflow {
	case NameProvisionServer:
		return []string{
			stepRecord, stepPlace, stepKeys, stepCheck, stepAddresses, stepImage, stepVolumes, stepNetworks,
			stepProbe, stepSeed, stepDomain, stepWire, stepReady, stepPlaybook, stepFinish,
		}
	case NameRunPlaybook:
		return []string{stepRecord, stepCheck, stepTargets, stepReady, stepPlaybook, stepFinish}
	case NameConfigureServer:
		return []string{stepRecord, stepCheck, stepReady, stepPlaybook, stepFinish}
	case NameUpdateServer:
		return []string{
			stepRecord, stepCheck, stepResize, stepAddresses, stepVolumes, stepNetworks, stepProbe, stepSeed,
			stepShutdown, stepDomain, stepWire, stepPlug, stepPlugNICs, stepFit, stepGrow, stepReady, stepPlaybook,
			stepUnplugNICs, stepFinish, stepDetach, stepReleaseNICs,
		}
	case NameRebuildServer:
		return []string{
			stepRecord, stepKeys, stepCheck, stepAddresses, stepImage, stepNewBoot, stepSeed, stepShutdown,
			stepDomain, stepWire, stepReady, stepPlaybook, stepFinish, stepOldBoot,
		}
	case NameLoseHost:
		return []string{stepDeclare, stepTell}
	}
	return nil
}

// Skips reports whether a step of ProvisionServer has nothing to do, as its input tells.
func (in ProvisionServerIn) Skips(step string) bool {
	switch step {
	case stepKeys:
		return len(in.Spec.Auth.URL)+len(in.Spec.Auth.PublicKey) == 0
	case stepCheck:
		return in.Spec.Ansible == nil || in.Spec.Ansible.Pull != nil
	case stepPlaybook:
		return in.Spec.Ansible == nil
	}
	return false
}

// Registered gives every workflow under its registered name.
func Registered() map[string]any {
	return map[string]any{
		NameProvisionServer: ProvisionServer,
		NameDeleteServer:    DeleteServer,
		NamePowerServer:     PowerServer,
		NameCreateNetwork:   CreateNetwork,
		NameDeleteNetwork:   DeleteNetwork,
		NameCreateVolume:    CreateVolume,
		NameDeleteVolume:    DeleteVolume,
		NameCreateImage:     CreateImage,
		NameDeleteImage:     DeleteImage,
		NameRunPlaybook:     RunPlaybook,
		NameDeletePlaybook:  DeletePlaybook,
		NameApplyDocuments:  ApplyDocuments,
		NameStartNext:       StartNext,
		NameConfigureServer: ConfigureServer,
		NameRebuildServer:   RebuildServer,
		NameUpdateServer:    UpdateServer,
		NameSweep:           Sweep,
		NameDrift:           Drift,
		NameScheduled:       Scheduled,
		NameSettleServer:    SettleServer,
		NameSettleResource:  SettleResource,
		NameLoseHost:        LoseHost,
	}
}
