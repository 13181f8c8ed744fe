package temporalnode

import (
	"fmt"
	"strings"
	"time"

	"go.temporal.io/server/common/dynamicconfig"
	"gopkg.in/yaml.v3"
)

const (
	// queuePollRPS replaces 20 a second: each step of a workflow passes several
	// queues, and at 20 polls a second each passage waits up to 100 ms.
	queuePollRPS = 2000
	// timerShift replaces 1 s: how late a timer may fire to be batched with others.
	timerShift = 20 * time.Millisecond
	// historyLongPoll replaces 20 s: now and then a long poll misses the closing
	// event, and its caller then waits until the poll expires.
	historyLongPoll = 2 * time.Second
	// partitions replaces 4: spreading a task queue over partitions only forwards
	// tasks about when there is one matching host.
	partitions = 1
	// namespaceRefresh replaces 2 s: how long a changed namespace stays unseen.
	namespaceRefresh = time.Second
)

// Overrides are dynamic configuration values by key, as of `key=value` flags.
type Overrides map[string]any

// ParseOverrides reads "key=value" strings; a value is YAML: true, 5, "5s".
func ParseOverrides(pairs []string) (Overrides, error) {
	overrides := Overrides{}
	for _, pair := range pairs {
		key, text, ok := strings.Cut(pair, "=")
		if !ok || key == "" {
			return nil, fmt.Errorf("dynamic config value %q: want KEY=VALUE", pair)
		}
		var value any
		if err := yaml.Unmarshal([]byte(text), &value); err != nil {
			return nil, fmt.Errorf("dynamic config value %q: %w", key, err)
		}
		overrides[key] = value
	}
	return overrides, nil
}

// dynamicConfig is tuned for one machine; upstream's defaults are for clusters.
func dynamicConfig(overrides Overrides) dynamicconfig.StaticClient {
	values := dynamicconfig.StaticClient{
		dynamicconfig.TransferProcessorMaxPollRPS.Key():             queuePollRPS,
		dynamicconfig.TimerProcessorMaxPollRPS.Key():                queuePollRPS,
		dynamicconfig.VisibilityProcessorMaxPollRPS.Key():           queuePollRPS,
		dynamicconfig.OutboundProcessorMaxPollRPS.Key():             queuePollRPS,
		dynamicconfig.TimerProcessorMaxTimeShift.Key():              timerShift,
		dynamicconfig.HistoryLongPollExpirationInterval.Key():       historyLongPoll,
		dynamicconfig.MatchingNumTaskqueueReadPartitions.Key():      partitions,
		dynamicconfig.MatchingNumTaskqueueWritePartitions.Key():     partitions,
		dynamicconfig.NamespaceCacheRefreshInterval.Key():           namespaceRefresh,
		dynamicconfig.ForceSearchAttributesCacheRefreshOnRead.Key(): true,
	}
	for key, value := range overrides {
		values[dynamicconfig.MakeKey(key)] = value
	}
	return values
}
