/** Names by which JupyterLab knows what is ours; they are needed before anything of it is loaded. */

export const PLUGIN = 'paijupyter:plugin';

/** What the front end draws of a cell's output. */
export const MIME = {
  job: 'application/vnd.paijupyter.job+json',
  form: 'application/vnd.paijupyter.form+json'
} as const;

export const CommandIDs = {
  openJobs: 'paijupyter:open-jobs',
  openJob: 'paijupyter:open-job',
  openLog: 'paijupyter:open-log',
  stop: 'paijupyter:stop',
  retry: 'paijupyter:retry',
  deleteJob: 'paijupyter:delete',
  openNotebook: 'paijupyter:open-notebook',
  runCell: 'paijupyter:run-cell',
  copyId: 'paijupyter:copy-id',
  exportDocument: 'paijupyter:export',
  form: 'paijupyter:form',
  reconnect: 'paijupyter:reconnect',
  logIn: 'paijupyter:log-in'
} as const;

/** Addresses with this are links to logs. */
export const LINK = /[?&]paijupyter-log=/;
export const OPEN_LINK = 'paijupyter:open-link';
