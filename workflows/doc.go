// Package workflows holds the durable operations. Deterministic code only: it imports
// the SDK's workflow and temporal packages, manifest, errs and the activities' inputs
// and outputs; every side effect is an activity.
//
//	ApplyDocuments ──child──▶ CreateNetwork  network/<name>
//	               ──child──▶ CreateVolume   volume/<name>
//	               ──child──▶ CreateImage    image/<name>
//	               ──child──▶ ProvisionServer server/<name>, or UpdateServer where it stands
//	StartNext      ──waits or cancels, then child──▶ any of them, also
//	                          PowerServer, ConfigureServer, RebuildServer  server/<name>
//
// A workflow ID is the resource's name, so Temporal itself allows one operation a
// resource. The body of each workflow reads as its list of steps (operation.go); the
// undo of a step is registered before the step runs (saga.go); timeouts and retries
// have their names and reasons in policy.go. What works on a server that was built before
// is a provision that has read its findings from the record (standing.go).
package workflows
