import io.fabric8.kubernetes.api.model.ConfigMap;
import io.fabric8.kubernetes.api.model.ConfigMapBuilder;
import io.fabric8.kubernetes.api.model.ListOptionsBuilder;
import io.fabric8.kubernetes.api.model.NodeList;
import io.fabric8.kubernetes.client.Config;
import io.fabric8.kubernetes.client.KubernetesClient;
import io.fabric8.kubernetes.client.KubernetesClientBuilder;
import io.fabric8.kubernetes.client.KubernetesClientException;
import io.fabric8.kubernetes.client.dsl.Resource;
import io.fabric8.kubernetes.client.dsl.base.PatchContext;
import io.fabric8.kubernetes.client.dsl.base.PatchType;
import io.fabric8.kubernetes.client.dsl.base.ResourceDefinitionContext;
import io.fabric8.kubernetes.client.extended.leaderelection.LeaderCallbacks;
import io.fabric8.kubernetes.client.extended.leaderelection.LeaderElectionConfigBuilder;
import io.fabric8.kubernetes.client.extended.leaderelection.resourcelock.LeaseLock;
import io.fabric8.kubernetes.client.informers.ResourceEventHandler;
import java.io.File;
import java.time.Duration;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;

/** `Flows FLOW KUBECONFIG NAMESPACE` prints the results of a flow, which equal the results of ../client-java. */
public class Flows {
  private static final String NAME = "by-fabric8";
  private final KubernetesClient client;
  private final String namespace;

  private Flows(KubernetesClient client, String namespace) {
    this.client = client;
    this.namespace = namespace;
  }

  public static void main(String[] args) throws Exception {
    Config config = Config.fromKubeconfig(new File(args[1]));
    try (KubernetesClient client = new KubernetesClientBuilder().withConfig(config).build()) {
      Flows flows = new Flows(client, args[2]);
      switch (args[0]) {
        case "nodes" -> flows.nodes();
        case "platform" -> flows.platform();
        case "objects" -> flows.objects();
        case "informer" -> flows.informer();
        case "logs" -> System.out.print(client.pods().inNamespace(args[2]).withName("web").tailingLines(1).getLog());
        case "leader" -> flows.leader();
        default -> throw new IllegalArgumentException(args[0]);
      }
    }
  }

  private void nodes() {
    String next = null;
    do {
      NodeList page = client.nodes().list(new ListOptionsBuilder().withLimit(3L).withContinue(next).build());
      page.getItems().forEach(node -> System.out.println(node.getMetadata().getName()));
      next = page.getMetadata().getContinue();
    } while (next != null && !next.isEmpty());
  }

  private void platform() {
    ResourceDefinitionContext nodes = new ResourceDefinitionContext.Builder()
        .withGroup("resources.platform.io").withVersion("v1alpha3").withPlural("nodes").withKind("Node")
        .withNamespaced(false).build();
    client.genericKubernetesResources(nodes).list().getItems()
        .forEach(node -> System.out.println(node.getMetadata().getName()));
  }

  private ConfigMap settings(String value) {
    return new ConfigMapBuilder().withNewMetadata().withName(NAME).withNamespace(namespace).endMetadata()
        .addToData("value", value).build();
  }

  private Resource<ConfigMap> own() {
    return client.configMaps().inNamespace(namespace).withName(NAME);
  }

  private void objects() {
    System.out.println("created " + client.resource(settings("1")).create().getData().get("value"));
    System.out.println("applied " + client.resource(settings("2")).forceConflicts().serverSideApply().getData().get("value"));
    ConfigMap patched = own().patch(PatchContext.of(PatchType.JSON_MERGE), "{\"data\":{\"value\":\"3\"}}");
    System.out.println("patched " + patched.getData().get("value"));
    System.out.println("read " + own().get().getData().get("value"));
    own().withTimeout(20, TimeUnit.SECONDS).delete();
    System.out.println("deleted");
    try {
      own().patch(PatchContext.of(PatchType.JSON_MERGE), "{}");
    } catch (KubernetesClientException error) {
      System.out.println(error.getCode() + " " + error.getStatus().getReason());
    }
  }

  private void informer() throws Exception {
    BlockingQueue<String> events = new LinkedBlockingQueue<>();
    try (var informer = own().inform(new ResourceEventHandler<ConfigMap>() {
      public void onAdd(ConfigMap added) {
        events.add("added " + added.getData().get("value"));
      }

      public void onUpdate(ConfigMap before, ConfigMap after) {
        events.add("updated " + after.getData().get("value"));
      }

      public void onDelete(ConfigMap last, boolean unknown) {
        events.add("deleted " + last.getData().get("value"));
      }
    })) {
      client.resource(settings("1")).create();
      System.out.println(events.poll(20, TimeUnit.SECONDS));
      own().patch(PatchContext.of(PatchType.JSON_MERGE), "{\"data\":{\"value\":\"2\"}}");
      System.out.println(events.poll(20, TimeUnit.SECONDS));
      own().delete();
      System.out.println(events.poll(20, TimeUnit.SECONDS));
    }
  }

  private void leader() throws Exception {
    for (String name : new String[] {"first", "second"}) {
      CountDownLatch leads = new CountDownLatch(1);
      var elected = client.leaderElector().withConfig(new LeaderElectionConfigBuilder().withName(NAME)
          .withLeaseDuration(Duration.ofSeconds(10)).withRenewDeadline(Duration.ofSeconds(5))
          .withRetryPeriod(Duration.ofSeconds(1)).withReleaseOnCancel(true)
          .withLock(new LeaseLock(namespace, NAME, name))
          .withLeaderCallbacks(new LeaderCallbacks(() -> {
            System.out.println(name + " leads");
            leads.countDown();
          }, () -> System.out.println(name + " stops"), leader -> {}))
          .build()).build();
      var running = elected.start();
      if (!leads.await(30, TimeUnit.SECONDS)) throw new IllegalStateException(name + " does not lead");
      running.cancel(true);
    }
  }
}
