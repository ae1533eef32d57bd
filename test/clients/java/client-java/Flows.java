import io.kubernetes.client.custom.V1Patch;
import io.kubernetes.client.informer.ResourceEventHandler;
import io.kubernetes.client.informer.SharedInformerFactory;
import io.kubernetes.client.openapi.ApiClient;
import io.kubernetes.client.openapi.ApiException;
import io.kubernetes.client.openapi.apis.CoreV1Api;
import io.kubernetes.client.openapi.models.V1ConfigMap;
import io.kubernetes.client.openapi.models.V1ConfigMapList;
import io.kubernetes.client.openapi.models.V1NodeList;
import io.kubernetes.client.openapi.models.V1ObjectMeta;
import io.kubernetes.client.openapi.models.V1Status;
import io.kubernetes.client.util.ClientBuilder;
import io.kubernetes.client.util.KubeConfig;
import io.kubernetes.client.util.PatchUtils;
import io.kubernetes.client.util.generic.dynamic.DynamicKubernetesApi;
import java.io.FileReader;
import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;

/** `Flows FLOW KUBECONFIG NAMESPACE` prints the results of a flow, which equal the results of ../fabric8. */
public class Flows {
  private static final String NAME = "by-client-java";
  private final ApiClient client;
  private final CoreV1Api core;
  private final String namespace;

  private Flows(ApiClient client, String namespace) {
    this.client = client;
    this.core = new CoreV1Api(client);
    this.namespace = namespace;
  }

  public static void main(String[] args) throws Exception {
    ApiClient client = ClientBuilder.kubeconfig(KubeConfig.loadKubeConfig(new FileReader(args[1]))).build();
    Flows flows = new Flows(client, args[2]);
    switch (args[0]) {
      case "nodes" -> flows.nodes();
      case "platform" -> flows.platform();
      case "objects" -> flows.objects();
      case "informer" -> flows.informer();
      case "logs" -> System.out.print(flows.core.readNamespacedPodLog("web", args[2]).tailLines(1).execute());
      default -> throw new IllegalArgumentException(args[0]);
    }
    // Threads of the HTTP client would keep the program alive for a minute.
    System.exit(0);
  }

  private void nodes() throws ApiException {
    String next = null;
    do {
      V1NodeList page = core.listNode().limit(3)._continue(next).execute();
      page.getItems().forEach(node -> System.out.println(node.getMetadata().getName()));
      next = page.getMetadata().getContinue();
    } while (next != null && !next.isEmpty());
  }

  private void platform() throws ApiException {
    new DynamicKubernetesApi("resources.platform.io", "v1alpha3", "nodes", client).list().throwsApiException()
        .getObject().getItems().forEach(node -> System.out.println(node.getMetadata().getName()));
  }

  private V1ConfigMap settings(String value) {
    return new V1ConfigMap().metadata(new V1ObjectMeta().name(NAME)).data(Map.of("value", value));
  }

  private V1ConfigMap patch(String format, String text) throws ApiException {
    return PatchUtils.patch(V1ConfigMap.class, () -> {
      var request = core.patchNamespacedConfigMap(NAME, namespace, new V1Patch(text));
      return (format.equals(V1Patch.PATCH_FORMAT_APPLY_YAML) ? request.fieldManager(NAME).force(true) : request)
          .buildCall(null);
    }, format, client);
  }

  private void objects() throws ApiException {
    System.out.println("created " + core.createNamespacedConfigMap(namespace, settings("1")).execute().getData().get("value"));
    V1ConfigMap applied = patch(V1Patch.PATCH_FORMAT_APPLY_YAML,
        "apiVersion: v1\nkind: ConfigMap\nmetadata: { name: " + NAME + " }\ndata: { value: '2' }\n");
    System.out.println("applied " + applied.getData().get("value"));
    V1ConfigMap patched = patch(V1Patch.PATCH_FORMAT_JSON_MERGE_PATCH, "{\"data\":{\"value\":\"3\"}}");
    System.out.println("patched " + patched.getData().get("value"));
    System.out.println("read " + core.readNamespacedConfigMap(NAME, namespace).execute().getData().get("value"));
    core.deleteNamespacedConfigMap(NAME, namespace).execute();
    System.out.println("deleted");
    try {
      core.readNamespacedConfigMap(NAME, namespace).execute();
    } catch (ApiException error) {
      System.out.println(error.getCode() + " " + client.getJSON().getGson().fromJson(error.getResponseBody(), V1Status.class).getReason());
    }
  }

  private void informer() throws Exception {
    BlockingQueue<String> events = new LinkedBlockingQueue<>();
    client.setReadTimeout(0);
    SharedInformerFactory factory = new SharedInformerFactory(client);
    factory.sharedIndexInformerFor(
        parameters -> core.listNamespacedConfigMap(namespace).fieldSelector("metadata.name=" + NAME)
            .resourceVersion(parameters.resourceVersion).timeoutSeconds(parameters.timeoutSeconds)
            .watch(parameters.watch).buildCall(null),
        V1ConfigMap.class, V1ConfigMapList.class).addEventHandler(new ResourceEventHandler<V1ConfigMap>() {
          public void onAdd(V1ConfigMap added) {
            events.add("added " + added.getData().get("value"));
          }

          public void onUpdate(V1ConfigMap before, V1ConfigMap after) {
            events.add("updated " + after.getData().get("value"));
          }

          public void onDelete(V1ConfigMap last, boolean unknown) {
            events.add("deleted " + last.getData().get("value"));
          }
        });
    factory.startAllRegisteredInformers();
    core.createNamespacedConfigMap(namespace, settings("1")).execute();
    System.out.println(events.poll(20, TimeUnit.SECONDS));
    patch(V1Patch.PATCH_FORMAT_JSON_MERGE_PATCH, "{\"data\":{\"value\":\"2\"}}");
    System.out.println(events.poll(20, TimeUnit.SECONDS));
    core.deleteNamespacedConfigMap(NAME, namespace).execute();
    System.out.println(events.poll(20, TimeUnit.SECONDS));
    factory.stopAllRegisteredInformers();
  }
}
