// What a program of an OpenPAI user does, with Microsoft's own client: submit, poll, list, read logs, stop.
// Usage: node openpai_client.js PORTAL USER TOKEN; NODE_PATH is where @microsoft/openpai-js-sdk is. Prints one JSON object.
const { PAIV2 } = require('@microsoft/openpai-js-sdk');

const [portal, username, token] = process.argv.slice(2);
const client = new PAIV2.OpenPAIClient({ username, token, rest_server_uri: `${portal}/rest-server` });

const job = (name, command) => ({
  protocolVersion: 2,
  name,
  type: 'job',
  prerequisites: [{ name: 'img', type: 'dockerimage', uri: 'python' }],
  taskRoles: {
    worker: {
      instances: 2,
      dockerImage: 'img',
      resourcePerInstance: { cpu: 1, memoryMB: 100, gpu: 0 },
      commands: [command],
    },
  },
});

const until = async (name, states) => {
  for (let turn = 0; turn < 600; turn += 1) {
    const found = await client.job.getJob(username, name);
    if (states.includes(found.jobStatus.state)) return found;
    await new Promise(resolve => setTimeout(resolve, 200));
  }
  throw new Error(`${name} is never ${states}`);
};

// The kind and code of an error, as the client makes it of an answer.
const refused = async call => {
  try {
    return await call;
  } catch (error) {
    return { kind: error.constructor.name, code: (error.data || {}).code };
  }
};

const log = async uri => {
  const answer = await fetch(portal + uri, { headers: { Authorization: `Bearer ${token}` } });
  return answer.text();
};

(async () => {
  const told = {};
  told.info = await client.api.getClusterInfo();
  told.user = await client.user.getUser(username);
  told.clusters = Object.keys(await client.virtualCluster.listVirtualClusters());
  told.cluster = await client.virtualCluster.getVirtualCluster('default');
  told.storages = await client.storage.getStorages();
  told.submitted = await client.job.createJob(job('train-epoch2', 'echo "task $PAI_CURRENT_TASK_ROLE_CURRENT_TASK_INDEX"'));
  told.again = await refused(client.job.createJob(job('train-epoch2', 'true')));
  told.wrong = await refused(client.job.createJob({ ...job('wrong', 'true'), nosuch: 1 }));
  told.ended = await until('train-epoch2', ['SUCCEEDED', 'FAILED', 'STOPPED']);
  told.attempt = await client.job.getJob(username, 'train-epoch2', 0);
  told.config = await client.job.getJobConfig(username, 'train-epoch2');
  told.task = await client.job.getTask(username, 'train-epoch2', 0, 'worker', 1);
  told.events = await client.job.listEvents(username, 'train-epoch2', { type: 'Warning' });
  for (const [key, tail] of [['logs', false], ['tail', true]]) {
    const { locations } = await client.job.getTaskLogs(username, 'train-epoch2', 0, 'worker', 1, 0, tail);
    told[key] = await log(locations.find(each => each.name === 'all').uri);
  }
  await client.job.createJob(job('endless', 'sleep 600'));
  await until('endless', ['RUNNING']);
  told.stop = await client.job.updateJobExecutionType(username, 'endless', 'STOP');
  told.stopped = await until('endless', ['STOPPED']);
  told.list = (await client.job.listJobs({ username, limit: 10 })).map(each => [each.name, each.state]);
  told.page = await client.job.listJobs({ state: 'SUCCEEDED', keyword: 'epoch', withTotalCount: true, offset: 0, limit: 1 });
  told.nobody = await refused(client.job.getJob(username, 'nosuch'));
  told.tag = await refused(client.job.addTag(username, 'endless', 'a'));
  told.history = await refused(client.jobHistory.getJobAttempts(username, 'endless'));
  const stranger = new PAIV2.OpenPAIClient({ username, token: 'x', rest_server_uri: `${portal}/rest-server` });
  told.stranger = await refused(stranger.job.listJobs());
  console.log(JSON.stringify(told));
})().catch(error => {
  console.error(error);
  process.exit(1);
});
